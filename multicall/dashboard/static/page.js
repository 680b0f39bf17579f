'use strict';
// The page draws what it is sent: rows of HTML, each with the list that it is in and its place there.
const $ = id => document.getElementById(id);
const svgNS = 'http://www.w3.org/2000/svg';
const began = Number(document.documentElement.dataset.began);
let skew = 0; // of this browser's clock, in ms
const now = () => Date.now() + skew;

// ---- rows

function parse(html, list) {
  const t = document.createElement('template');
  const inSVG = list.namespaceURI === svgNS;
  t.innerHTML = inSVG ? '<svg>' + html + '</svg>' : html;
  return inSVG ? t.content.firstChild.firstChild : t.content.firstElementChild;
}

function putRow(row) {
  const old = $(row.id), list = $(row.list);
  if (!row.html || !list) { if (old) old.remove(); return; }
  const el = parse(row.html, list);
  el.dataset.order = row.order || '';
  el.dataset.sort = sortKey(el, list);
  el.querySelectorAll('time[datetime]').forEach(setTitle);
  if (old?.querySelector('details[open]') && el.querySelector('details')) el.querySelector('details').open = true;
  const focused = old && old.contains(document.activeElement);
  if (old && old.parentElement === list && old.dataset.order === el.dataset.order && old.dataset.sort === el.dataset.sort) {
    old.replaceWith(el);
  } else {
    if (old) old.remove();
    let after = list.lastElementChild;
    while (after && compareRows(after, el) > 0) after = after.previousElementSibling;
    list.insertBefore(el, after ? after.nextElementSibling : list.firstElementChild);
  }
  if (focused) (el.matches('a') ? el : el.querySelector('a') || el).focus();
  if (row.list === 'units' || row.list === 'lanes') filterRow(el);
  if (row.list === 'units' && laneOf(el)) filterRow(laneOf(el));
  if (row.list === 'lanes') watchLane(el);
}

function putRows(rows) {
  rows.forEach(putRow);
  drawLines();
  refreshDetail(rows);
}

// ---- tables are sorted by a click on a heading; a third click leaves the order to the server

const sorting = new Map(); // from a table's body to { column, direction }
const collator = new Intl.Collator([], { numeric: true });

function sortKey(el, list) {
  const by = sorting.get(list.id);
  const cell = by && el.children[by.column];
  const time = cell && cell.querySelector('time[datetime]');
  return time ? time.dateTime : cell ? cell.textContent : '';
}

function compareRows(a, b) {
  const by = sorting.get(a.parentElement.id);
  const order = by ? collator.compare(a.dataset.sort, b.dataset.sort) * by.direction : 0;
  return order || (a.dataset.order < b.dataset.order ? -1 : a.dataset.order > b.dataset.order ? 1 : 0);
}

function sortBy(heading) {
  const list = heading.closest('table').tBodies[0], column = heading.cellIndex;
  const old = sorting.get(list.id);
  const direction = !old || old.column !== column ? 1 : old.direction === 1 ? -1 : 0;
  if (direction) sorting.set(list.id, { column, direction }); else sorting.delete(list.id);
  heading.closest('tr').querySelectorAll('th').forEach(th => th.removeAttribute('aria-sort'));
  if (direction) heading.setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
  for (const el of list.children) el.dataset.sort = sortKey(el, list);
  list.append(...[...list.children].sort(compareRows));
}

document.addEventListener('click', e => {
  const heading = e.target.closest('main thead th');
  if (heading) sortBy(heading);
  const copy = e.target.closest('.copy');
  if (copy) navigator.clipboard.writeText(copy.dataset.copy).then(() => { copy.textContent = 'copied'; }, () => { copy.textContent = 'cannot copy'; });
  const filter = e.target.closest('[data-filter]');
  if (filter) {
    counted = $('filter').value === filter.dataset.filter ? '' : filter.dataset.filter;
    $('filter').value = counted;
    $('filter').dispatchEvent(new Event('input'));
  }
});

// ---- the diagram: boxes stand where the server has put them; a line leads from box to box

function drawLines() {
  const svg = $('relations');
  if (!svg) return;
  $('topology-card').classList.toggle('bare', $('env/summary') !== null && !document.querySelector('.box'));
  const frame = $('diagram').getBoundingClientRect();
  const boxes = name => [...document.querySelectorAll('[data-service="' + CSS.escape(name) + '"]')];
  const rectangle = el => { const r = el.getBoundingClientRect(); return { left: r.left - frame.left, right: r.right - frame.left, top: r.top - frame.top, bottom: r.bottom - frame.top }; };
  const meeting = new Map();
  const lines = [...svg.children, ...$('failing').children].flatMap(el => {
    let best = null; // of a subordinate that stands on several boxes
    for (const one of boxes(el.dataset.from)) for (const other of boxes(el.dataset.to)) {
      const a = rectangle(one.closest('.box')), b = rectangle(other.closest('.box'));
      const far = Math.abs(a.top - b.top) + Math.abs(a.left - b.left);
      if (!best || far < best.far) best = { el, far, one, other, a, b };
    }
    if (!best) return [];
    if (best.far === 0) { drawLoop(el, rectangle(best.one), rectangle(best.other)); return []; }
    if (best.a.top > best.b.top) [best.a, best.b] = [best.b, best.a];
    best.beside = best.b.top < best.a.bottom;
    best.ends = [[best.a, 'bottom', best.b], [best.b, best.beside ? 'bottom' : 'top', best.a]].map(([box, edge, other]) => {
      const end = { x: (box.left + box.right) / 2, y: box[edge], width: box.right - box.left, from: other.left };
      const key = end.x + ' ' + end.y;
      meeting.set(key, [...meeting.get(key) || [], end]);
      return end;
    });
    return [best];
  });
  for (const ends of meeting.values()) {
    ends.sort((p, q) => p.from - q.from);
    ends.forEach((end, i) => { end.x += (i - (ends.length - 1) / 2) * Math.min(52, (end.width - 30) / ends.length); });
  }
  for (const { el, beside, ends: [p, q] } of lines) {
    el.classList.remove('loop');
    const middle = beside ? Math.max(p.y, q.y) + 34 : (p.y + q.y) / 2;
    el.querySelectorAll('path').forEach(path => path.setAttribute('d', `M${p.x} ${p.y}C${p.x} ${middle} ${q.x} ${middle} ${q.x} ${q.y}`));
    const label = el.querySelector('text');
    label.setAttribute('x', (p.x + q.x) / 2);
    label.setAttribute('y', (p.y + q.y + 6 * middle) / 8);
  }
}

// drawLoop draws a relation among peers on the right of their box, that of a subordinate with its principal on the left.
function drawLoop(el, a, b) {
  const peers = a.top === b.top, x = peers ? a.right : Math.min(a.left, b.left), out = peers ? 22 : -22;
  const y1 = peers ? a.top + 12 : Math.min(a.top, b.top) + 14, y2 = peers ? a.top + 34 : (Math.max(a.top, b.top) + Math.min(a.bottom, b.bottom)) / 2;
  el.classList.add('loop');
  el.querySelectorAll('path').forEach(path => path.setAttribute('d', `M${x} ${y1}C${x + out} ${y1} ${x + out} ${y2} ${peers ? x : Math.max(a.left, b.left)} ${y2}`));
}

addEventListener('resize', () => { drawLines(); drawAxis(); });

// ---- what comes from the server

let streams = [];
let log, retry;

function listen(path, setUp) {
  const events = new EventSource(path);
  streams.push(events);
  events.addEventListener('page', e => {
    const page = JSON.parse(e.data);
    skew = page.now - Date.now();
    setUp(page);
    putRows(page.rows);
    zoomAllLanes();
    page.answered ? setLive() : setStale('the store cannot be read');
  });
  events.addEventListener('rows', e => {
    const rows = JSON.parse(e.data);
    putRows(rows);
    drawSoon(); // or a new hook would stand beyond the lane's end until the next second
    if (!rows.some(r => r.id === 'away' && r.html)) setLive();
  });
  events.addEventListener('pulse', e => {
    const pulse = JSON.parse(e.data);
    skew = pulse.now - Date.now();
    pulse.answered ? setLive() : setStale('the store does not answer: ' + pulse.why);
  });
  events.onerror = () => explainError(events);
  return events;
}

// explainError says why there is no connection. A browser tries again by itself, but not after an answer
// that is a refusal.
async function explainError(events) {
  const closed = events.readyState === EventSource.CLOSED;
  setStale('not connected: is the dashboard still running?');
  if (!closed) return;
  const answer = await fetch('/', { method: 'HEAD' }).catch(() => null);
  if (answer && answer.status === 403) { setStale('the dashboard has been started again: open the new link in its terminal'); return; }
  clearTimeout(retry);
  retry = setTimeout(connect, 3000);
}

const clear = selector => document.querySelectorAll(selector).forEach(el => el.remove());

// A browser has few connections to a server: what nobody sees has none.
function connect() {
  clearTimeout(retry);
  streams.forEach(s => s.close());
  streams = [];
  if (document.hidden) return;
  if (currentPart === 'fleet') {
    listen('/fleet', () => clear('#fleet [data-order], #notes *'));
    return;
  }
  listen('/environment', () => clear('#environment [data-order]:not(#log *), #summary *, #notes *'));
  followLog();
}

function followLog() {
  if (log) { log.close(); streams = streams.filter(s => s !== log); }
  log = listen('/log?' + new URLSearchParams({ level: $('level').value, text: $('text').value }), page => { clear('#log *'); $('log').classList.toggle('read', page.answered); });
  const scroll = () => { if ($('following').checked) $('log').scrollTop = $('log').scrollHeight; };
  log.addEventListener('page', scroll);
  log.addEventListener('rows', scroll);
}

// ---- how old is what is shown; it is live only while the store answers

const maxSilence = 12000; // ms: two questions to the store, and a little
let answered = 0, trouble = 'connecting';

function setLive() { answered = now(); trouble = ''; showLive(); }

function setStale(why) { trouble = why; showLive(); }

let liveText = ''; // what is shown; it says all that the dot's colour depends on

function showLive() {
  const old = Math.round((now() - answered) / 1000);
  const why = trouble || (now() - answered > maxSilence ? 'the dashboard sends nothing' : '');
  // While all is well the text changes with each answer only: an idle page should cost nothing.
  const since = !answered ? '' : why ? ', as of ' + (old < 120 ? old + ' s' : Math.floor(old / 60) + ' min') + ' ago' : ', as of ' + new Date(answered - skew).toLocaleTimeString([], { hourCycle: 'h23' });
  const text = (why || 'live') + since;
  if (text === liveText) return;
  liveText = text;
  $('live').className = why ? (answered || why !== 'connecting' ? 'off' : '') : 'on';
  document.body.classList.toggle('stale', why !== '' && answered > 0);
  $('live').firstChild.textContent = text;
}

document.addEventListener('visibilitychange', connect);

// ---- filters

let counted = ''; // the status of the count that was clicked: a message can have the same word

const laneOf = unit => $(unit.id.replace('env/unit/', 'env/lane/'));
const unitOf = lane => $(lane.id.replace('env/lane/', 'env/unit/'));

function filterRow(el) {
  const text = $('filter').value.toLowerCase();
  const unit = unitOf(el) || el; // a lane is shown with its unit
  const matches = text === counted ? unit.classList.contains(text) : (unit.textContent + ' ' + unit.className).toLowerCase().includes(text);
  el.hidden = text !== '' && !matches;
}

function later(ms, f) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(f, ms); };
}

// ---- the timeline: from the first hook until now, or what was chosen

let dragged = null; // the part that was chosen by dragging, in seconds since began

function shownWindow() {
  if (dragged) return dragged;
  const to = (now() - began) / 1000;
  const chosen = Number(document.querySelector('[name=zoom]:checked').value);
  const first = Number($('env/timeline')?.dataset.first ?? to - 3600);
  return { from: chosen ? to - chosen : Math.min(to - 60, first - (to - first) / 50), to };
}

// Lanes that are scrolled away are not drawn: a thousand would keep a browser busy.
const seen = new Set();
const laneWatcher = new IntersectionObserver(all => {
  for (const { target, isIntersecting } of all) isIntersecting ? seen.add(target) : seen.delete(target);
  drawLanes();
}, { rootMargin: '600px' });

function watchLane(lane) { laneWatcher.observe(lane); zoomLane(lane, shownWindow()); }

function zoomLane(lane, { from, to }) {
  lane.querySelector('svg').setAttribute('viewBox', [from, 0, to - from, 16].join(' '));
}

// The page can be printed, so lanes that are scrolled away begin with the right part.
function zoomAllLanes() { document.querySelectorAll('.lane').forEach(lane => zoomLane(lane, shownWindow())); }

function drawLanes() {
  const shown = shownWindow();
  for (const lane of seen) if (lane.isConnected) zoomLane(lane, shown); else { seen.delete(lane); laneWatcher.unobserve(lane); }
}

function drawAxis() {
  const axis = $('axis');
  if (!axis || document.hidden) return;
  drawLanes();
  const { from, to } = shownWindow();
  const short = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  if (to - from < 600) short.second = '2-digit';
  const marks = innerWidth < 720 ? 3 : 7;
  const texts = Array.from({ length: marks }, (_, i) => new Date(began + 1000 * (from + (to - from) * i / (marks - 1))).toLocaleTimeString([], short));
  if (axis.textContent === texts.join('')) return;
  axis.replaceChildren(...texts.map(text => Object.assign(document.createElement('span'), { textContent: text })));
}

// A second of an hour is less than a pixel: the timeline moves by a few pixels at a time. A move takes the longer
// the more lanes there are, 30 ms for a thousand, so that many lanes move less often.
let drawn = 0;
function moveTimeline() {
  const { from, to } = shownWindow();
  const lanes = $('lanes')?.childElementCount ?? 0;
  const interval = Math.max(Math.min(20, (to - from) / 250), lanes / 200);
  if (!dragged && Date.now() - drawn < interval * 1000) return;
  drawn = Date.now();
  drawAxis();
}

function chooseWindow(part) {
  dragged = part;
  $('window').hidden = !part;
  drawAxis();
}

// dragTimeline chooses the part of the timeline between where a button went down and where it came up.
function dragTimeline() {
  const lanes = $('lanes');
  let start = null;
  const at = x => {
    const lane = lanes.querySelector('.lane svg');
    const r = lane.getBoundingClientRect(), { from, to } = shownWindow();
    return from + (to - from) * Math.min(1, Math.max(0, (x - r.left) / r.width));
  };
  lanes.addEventListener('pointerdown', e => { if (e.button === 0 && e.target.closest('.lane svg')) start = { x: e.clientX, at: at(e.clientX) }; });
  lanes.addEventListener('dragstart', e => e.preventDefault());
  addEventListener('pointerup', e => {
    const begun = start;
    start = null;
    if (!begun || Math.abs(e.clientX - begun.x) < 8) return;
    const end = at(e.clientX);
    chooseWindow({ from: Math.min(begun.at, end), to: Math.max(begun.at, end) });
    // What is under the pointer was not meant to be opened.
    const swallow = click => { click.preventDefault(); click.stopPropagation(); };
    addEventListener('click', swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener('click', swallow, { capture: true }), 0);
  });
}

// ---- time

function age(el) {
  const s = Math.max(0, Math.round((now() - Date.parse(el.dateTime)) / 1000));
  const text = s < 60 ? s + ' s' : s < 3600 ? Math.floor(s / 60) + ' min' : s < 172800 ? Math.floor(s / 3600) + ' h' : Math.floor(s / 86400) + ' days';
  if (el.textContent !== text) el.textContent = text;
}

function setTitle(el) {
  el.title = new Date(el.dateTime).toLocaleString();
  age(el);
}

// A browser keeps this list up to date by itself, so that a thousand rows are not searched each second.
const times = document.getElementsByTagName('time');

setInterval(() => {
  if (document.hidden) return;
  for (const el of times) if (el.dateTime) age(el);
  showLive();
  moveTimeline();
}, 1000);

const drawSoon = later(50, drawAxis);

// ---- details: what is shown stands in the address, so that the browser's "back" works

let shown = '', opener = null;

async function showDetail() {
  const hash = location.hash.slice(1);
  if (hash === '' || hash.startsWith('part=')) { hideDetail(hash.slice(5)); return; }
  if (shown !== hash && !shown) opener = document.activeElement;
  const fresh = shown !== hash;
  shown = hash;
  const answer = await fetch('/detail?' + hash, { signal: AbortSignal.timeout(8000) }).catch(() => null);
  if (shown !== hash) return;
  const text = answer ? await answer.text() : 'The details cannot be read: the dashboard does not answer. Is it still running?';
  const body = $('detail-body'), top = body.scrollTop, unfolded = body.querySelector('details')?.open;
  if (answer?.ok) body.innerHTML = text; else { body.replaceChildren(document.createElement('p')); body.firstChild.textContent = text; }
  if (!fresh && unfolded && body.querySelector('details')) body.querySelector('details').open = true;
  body.querySelectorAll('time[datetime]').forEach(setTitle);
  $('detail').hidden = false;
  document.querySelectorAll('.chosen').forEach(el => el.classList.remove('chosen'));
  document.querySelectorAll('a[href="#' + CSS.escape(hash) + '"]').forEach(el => el.classList.add('chosen'));
  if (fresh) { body.scrollTop = 0; $('detail').focus(); } else body.scrollTop = top;
}

function hideDetail(part) {
  shown = '';
  $('detail').hidden = true;
  document.querySelectorAll('.chosen').forEach(el => el.classList.remove('chosen'));
  if (opener && opener.isConnected) opener.focus();
  opener = null;
  if (part && part !== currentPart) {
    currentPart = part;
    connect();
  }
  document.querySelectorAll('.part').forEach(p => { p.hidden = p.id !== currentPart; });
  document.querySelectorAll('.tab').forEach(t => t.setAttribute('aria-current', t.hash === '#part=' + currentPart));
  drawLines();
}

let currentPart = $('environment') ? 'environment' : 'fleet';
const refresh = later(300, () => { if (shown) showDetail(); });

// refreshDetail reads again what is shown, if rows are about it.
function refreshDetail(rows) {
  const about = new URLSearchParams(shown);
  const id = about.get('unit') ? '/' + about.get('unit') : about.get('service') ? '/' + about.get('service') : '/' + about.get('relation');
  if (shown && rows.some(r => r.id.includes(id))) refresh();
}

// close leaves the address as it was, without a jump to the top.
const close = () => { history.pushState(null, '', '#part=' + currentPart); hideDetail(''); };
addEventListener('hashchange', showDetail);
$('close').addEventListener('click', close);
addEventListener('keydown', e => {
  if (e.key === 'Escape' && shown) close();
  if (e.key === '/' && $('filter') && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) { e.preventDefault(); $('filter').focus(); }
});
if ($('environment')) {
  $('filter').addEventListener('input', later(150, () => document.querySelectorAll('#units > tr, #lanes > div').forEach(filterRow)));
  $('zoom').addEventListener('change', () => chooseWindow(null));
  $('unzoom').addEventListener('click', () => chooseWindow(null));
  dragTimeline();
  $('level').addEventListener('change', followLog);
  $('text').addEventListener('input', later(300, followLog));
}
hideDetail('');
showDetail();
connect();
drawAxis();
