/* In the page: 10,000 events, and then 64 nodes with 64 cores where each pass has eight groups on other nodes, and eight moves are drawn. Comes to a line of figures. */
(async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const say = (name, data) => take('event: ' + name + '\ndata: ' + JSON.stringify(data));
  const began = performance.now();
  let index = S.index;
  for (let i = 0; i < 100; i++) {
    say('events', { events: Array.from({ length: 100 }, () => ({ index: ++index, time: new Date().toISOString(), kind: 'job-started', node: '', job: 1, move: 0, text: 'event ' + index })), end: false });
    if (i % 4 === 3) await frame();
  }
  await frame();
  const events = Math.round(performance.now() - began), kept = S.events.length, lines = $('events').children.length, newest = $('events').firstChild.textContent.includes('event ' + index);
  const live = S.live, told = { ...handlers };
  for (const name in handlers) handlers[name] = () => {}; /* what rmd says from here on */
  const nodes = Array.from({ length: 64 }, (_, k) => ({ name: 'm' + (k + 1), cores: 64, usable_cores: 64, ranks: 64, capsules: 4, health: 'UP', state: 'ALLOCATED', switch: ['leaf' + (k >> 4)], conditions: [], staying: [], condition: 'OK' }));
  const jobs = turn => Array.from({ length: 64 }, (_, k) => ({ id: k + 1, spec: { name: 'job' + k, user: 'alice', ranks: 64, active_ranks: 0, checkpoint_usec: 0 }, state: 'RUNNING', start: '2026-01-01T00:00:00.000000Z', moves: 0, checkpoints: [], parked_groups: 0,
    capsules: Array.from({ length: 4 }, (_, g) => ({ index: g, ranks: 16, node: 'm' + ((k + g * 7 + (k < 8 && g === 0 ? turn : 0)) % 64 + 1), cores: [] })) }));
  let script = 0;
  const pass = turn => {
    told.hello({ node: 'm1', admin: true });
    told.nodes({ nodes });
    told.jobs({ jobs: jobs(turn) });
    told.moves({ moves: Array.from({ length: 8 }, (_, k) => ({ id: k + 1, job: k + 1, capsule: 0, from: 'm' + (k * 7 + 1), to: 'm' + (64 - k * 5), state: 'RUNNING', reason: '', start: new Date().toISOString(), end: null, freeze_usec: 0, image_bytes: 0 })) });
    told.pass({ time: new Date().toISOString(), leads: true });
    const t = performance.now();
    draw();
    script += performance.now() - t;
  };
  let frames = 0, slowest = 0, turn = 0, last = performance.now(), next = last;
  const end = last + 3000;
  while (last < end) {
    if (last >= next) { pass(turn++); next += 250; }
    await frame();
    const t = performance.now();
    slowest = Math.max(slowest, t - last);
    last = t;
    frames++;
  }
  const cells = document.querySelectorAll('.core').length;
  return ['events', kept, lines, newest, live, events, 'cells', cells, 'passes', turn, 'frames', Math.round(frames / 3), 'slowest', Math.round(slowest), 'script', Math.round(script / turn)].join(' ');
})()
