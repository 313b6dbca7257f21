# Given to perl with -e, in the namespaces of a node but for its pid namespace, which only children enter.
# Runs the command as such a child, passes signals on to it, ends with its exit code (128 + signal for a signal).
use strict;
use warnings;
use POSIX ();

my $child;
my @passed = qw(INT QUIT TERM HUP USR1 USR2);
# A terminal sends Ctrl-C to the command by itself.
my %by_terminal = -t STDIN ? (INT => 1, QUIT => 1) : ();

sub pass_on {
    my $signal = shift;
    kill $signal, $child if $child && !$by_terminal{$signal};
}

my $all = POSIX::SigSet->new;
$all->fillset;
POSIX::sigprocmask(POSIX::SIG_BLOCK, $all);
$SIG{$_} = \&pass_on for @passed;
$child = fork // die "fork: $!\n";
if (!$child) {
    $SIG{$_} = 'DEFAULT' for @passed;
    POSIX::sigprocmask(POSIX::SIG_UNBLOCK, $all);
    exec { $ARGV[0] } @ARGV or do {
        print STDERR "$ARGV[0]: $!\n";
        POSIX::_exit(127);
    };
}
POSIX::sigprocmask(POSIX::SIG_UNBLOCK, $all);
# Interrupted by a signal it is asked again.
1 while waitpid($child, 0) != $child;
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
