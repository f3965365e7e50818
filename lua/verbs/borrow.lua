#!lua flags=allow-oom
-- borrow: a partition takes what ledgers have lent it, lets jobs through with that, and says what
-- it can use and what it could give back.
-- USES  clock, tombstone, group, digits, line, gate, rates, pausing, lent, nudge, own, charge,
--       costs, keeping, lanes, opening, turns, heads, shutting, letting-through
-- KEYS  1 leader  2 scheduled  3 ready  4 meta  5 line  6 lanes  7 holds  8 groups  9 order
--       10 work  11 wake  12 jobs
-- ARGV  1 now  2 term
--       then per limit: name, kind, seq, turns, ends, share
--       now ms, '' = server time; term: the leader's value; kind r = a rate, c = a concurrency;
--       seq: of the call that the ledger has answered; turns, and when they end in ms of this
--       clock; share: so many places it may use from now on
-- RETURN {now, running, room, line, then per limit of gates: name, keeps, stock, used}: running:
--        entries of ready; room: how many more its own limits let through within a tenth of a
--        second, of those that wait; line: how many are in line; keeps: so many places it has or
--        uses; stock: turns that have not ended; used: all that were ever used. {'fenced'} when the
--        term is not the leader's
-- A gift counts once, by its epoch and seq, and one that comes after a later one does not count.
-- Turns that have ended are dropped. A share that falls lets nobody in from now on.
local leader, scheduled, ready, meta = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local line, lanes, holds, groups = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local order, work, wake = KEYS[9], KEYS[10], KEYS[11]
local keys = { scheduled = scheduled, ready = ready, meta = meta, line = line, lanes = lanes,
  holds = holds, groups = groups, order = order, work = work, wake = wake,
  jobs = KEYS[12] }
local now, micros = clock(ARGV[1])
local term = ARGV[2]
if redis.call('GET', leader) ~= term then return { 'fenced' } end
local epoch = tonumber(term:match(':(%d+):%d+$') or 0)
local state = redis.call('HMGET', meta, 'gates', 'gate', 'paused')
local gate = gateOf(state[1], state[2], now, micros)
local pause = pauseIn(state[3], state[1])
if not (gate and gate.names) then return { now, 0, 0, 0 } end

local isGiven = false
for at = 3, #ARGV, 6 do
  local name, kind, seq = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local turns, ends, share = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
  for _, one in ipairs(lentTo(meta, gate)) do
    if one.name == name and (epoch > one.epoch or epoch == one.epoch and seq > one.seq) then
      one.kind, one.epoch, one.seq, one.share = kind, epoch, seq, share
      one.turns[#one.turns + 1] = { count = turns, ends = ends }
      isGiven = true
    end
  end
end
if isGiven then
  keepLent(meta, gate)
end
if not pause then
  openTimed(keys, gate)
  ringBell(keys, gate)
end

local running, waiting = redis.call('XLEN', ready), redis.call('ZCARD', line)
local isOpen = not (pause or gate.isShut) and openTimed(keys, gate)
local room = isOpen and waiting or 0
if gate.concurrency > 0 then
  room = math.min(room, math.max(0, gate.concurrency - running))
end
for _, rate in ipairs(ratesIn(meta, gate)) do
  room = math.min(room, math.max(0, turnsIn(rate)) + math.ceil(100000 / rate.interval))
end
local reply = { now, running, room, waiting }
for _, one in ipairs(lentTo(meta, gate)) do
  local keeps = one.kind == 'c' and math.max(running, one.share) or 0
  for _, word in ipairs({ one.name, keeps, stockOf(gate, one), one.used }) do
    reply[#reply + 1] = word
  end
end
return reply
