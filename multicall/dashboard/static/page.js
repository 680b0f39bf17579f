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
  el.querySelectorAll('time[datetime]').forEach(age);
  const focused = old && old.contains(document.activeElement);
  if (old && old.parentElement === list && old.dataset.order === el.dataset.order) {
    old.replaceWith(el);
  } else {
    if (old) old.remove();
    let after = list.lastElementChild;
    while (after && after.dataset.order > el.dataset.order) after = after.previousElementSibling;
    list.insertBefore(el, after ? after.nextElementSibling : list.firstElementChild);
  }
  if (focused) (el.matches('a') ? el : el.querySelector('a') || el).focus();
  if (row.list === 'units' || row.list === 'lanes') filterRow(el);
  if (row.list === 'lanes') zoomLane(el.querySelector('svg'));
}

function putRows(rows) {
  rows.forEach(putRow);
  drawLines();
  refreshDetail(rows);
}

// ---- the diagram: boxes stand where the server has put them; a line leads from box to box

function drawLines() {
  const svg = $('relations');
  if (!svg) return;
  $('topology-card').classList.toggle('bare', !document.querySelector('.box'));
  const frame = $('diagram').getBoundingClientRect();
  const boxes = name => [...document.querySelectorAll('[data-service="' + CSS.escape(name) + '"]')];
  const rectangle = el => { const r = el.getBoundingClientRect(); return { left: r.left - frame.left, right: r.right - frame.left, top: r.top - frame.top, bottom: r.bottom - frame.top }; };
  const meeting = new Map();
  const lines = [...svg.children].flatMap(el => {
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

addEventListener('resize', drawLines);

// ---- what comes from the server

let streams = [];

function listen(path, setUp) {
  const events = new EventSource(path);
  streams.push(events);
  events.addEventListener('page', e => {
    const page = JSON.parse(e.data);
    skew = page.now - Date.now();
    setUp();
    putRows(page.rows);
    setLive(true);
  });
  events.addEventListener('rows', e => {
    putRows(JSON.parse(e.data));
    drawSoon(); // or a new hook would stand beyond the lane's end until the next second
  });
  events.onerror = () => setLive(false);
  return events;
}

const clear = selector => document.querySelectorAll(selector).forEach(el => el.remove());
let log;

// A browser has few connections to a server: what nobody sees has none.
function connect() {
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
  if (log) log.close();
  log = listen('/log?' + new URLSearchParams({ level: $('level').value, text: $('text').value }), () => clear('#log *'));
  const scroll = () => { if ($('following').checked) $('log').scrollTop = $('log').scrollHeight; };
  log.addEventListener('page', scroll);
  log.addEventListener('rows', scroll);
}

function setLive(yes) {
  $('live').className = yes ? 'on' : 'off';
  $('live').firstChild.textContent = yes ? 'live' : 'not connected: is the dashboard still running?';
}

document.addEventListener('visibilitychange', connect);

// ---- filters

function filterRow(el) {
  const text = $('filter').value.toLowerCase();
  el.hidden = text !== '' && !(el.textContent + ' ' + el.className).toLowerCase().includes(text);
}

function later(ms, f) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(f, ms); };
}

// ---- the timeline

const span = () => Number(document.querySelector('[name=zoom]:checked').value);

function zoomLane(svg) {
  const to = (now() - began) / 1000;
  svg.setAttribute('viewBox', [to - span(), 0, span(), 16].join(' '));
}

function drawAxis() {
  const axis = $('axis');
  if (!axis || document.hidden) return;
  document.querySelectorAll('.lane:not([hidden]) svg').forEach(zoomLane);
  const short = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  if (span() < 600) short.second = '2-digit';
  const marks = innerWidth < 720 ? 3 : 7;
  axis.replaceChildren(...Array.from({ length: marks }, (_, i) => {
    const mark = document.createElement('span');
    mark.textContent = new Date(now() - span() * 1000 * (1 - i / (marks - 1))).toLocaleTimeString([], short);
    return mark;
  }));
}

// ---- time

function age(el) {
  const s = Math.max(0, Math.round((now() - Date.parse(el.dateTime)) / 1000));
  const text = s < 60 ? s + ' s' : s < 3600 ? Math.floor(s / 60) + ' min' : s < 172800 ? Math.floor(s / 3600) + ' h' : Math.floor(s / 86400) + ' days';
  if (el.textContent !== text) el.textContent = text;
  el.title = new Date(el.dateTime).toLocaleString();
}

setInterval(() => document.querySelectorAll('time[datetime]').forEach(age), 1000);
setInterval(drawAxis, 1000);

const drawSoon = later(50, drawAxis);

// ---- details: what is shown stands in the address, so that the browser's "back" works

let shown = '', opener = null;

async function showDetail() {
  const hash = location.hash.slice(1);
  if (hash === '' || hash.startsWith('part=')) { hideDetail(hash.slice(5)); return; }
  if (shown !== hash && !shown) opener = document.activeElement;
  const fresh = shown !== hash;
  shown = hash;
  const answer = await fetch('/detail?' + hash).catch(() => null);
  if (!answer || shown !== hash) return;
  const text = await answer.text();
  const body = $('detail-body'), top = body.scrollTop;
  if (answer.ok) body.innerHTML = text; else { body.replaceChildren(document.createElement('p')); body.firstChild.textContent = text; }
  body.querySelectorAll('time[datetime]').forEach(age);
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
  $('zoom').addEventListener('change', drawAxis);
  $('level').addEventListener('change', followLog);
  $('text').addEventListener('input', later(300, followLog));
}
hideDetail('');
showDetail();
connect();
drawAxis();
