# Given to perl with -e, in the namespaces of a node but for its pid namespace, which only children enter.
# Runs the command as such a child, passes signals on to it, ends with its exit code (128 + signal for a signal).
# Without any module, POSIX above all: to load them takes longer than most commands.
my ($child, @early);
my @passed = qw(INT QUIT TERM HUP USR1 USR2);
# A terminal sends Ctrl-C to the command by itself.
my %by_terminal = -t STDIN ? (INT => 1, QUIT => 1) : ();

sub pass_on {
    my $signal = shift;
    return if $by_terminal{$signal};
    $child ? kill $signal, $child : push @early, $signal;
}

$SIG{$_} = \&pass_on for @passed;
my $forked = fork // die "fork: $!\n";
if (!$forked) {
    $SIG{$_} = 'DEFAULT' for @passed;
    exec { $ARGV[0] } @ARGV or print STDERR "$ARGV[0]: $!\n";
    exit 127;
}
$child = $forked;
kill $_, $child for @early;
# Interrupted by a signal it is asked again.
1 while waitpid($child, 0) != $child;
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
