#!lua flags=allow-oom
-- hand: a worker that comes over HTTP claims jobs: what it has done is completed, what it takes
-- over is started, and new entries are delivered to it and started, all in one call. A ledger keeps
-- which entries a claim was handed, so that the same claim has the same answer.
-- USES  clock, log-lines, run, telling, tombstone, stale, tags, weight, end-mark, mint, group,
--       head, let-go, digits, line, gate, rates, lent, pausing, nudge, again, own, charge, costs,
--       keeping, lanes, opening, yielding, leaving, turns, heads, shutting, letting-through,
--       lateness, pending, dead-letter, named, past, closed-tags, sets, callback, end-tags,
--       turn-away, offered, start-one, repeated, starting, end-many, completion, delivery, filling
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready  5 dead  6 done  7 meta  8 stale  9 tags  10 line
--       11 lanes  12 holds  13 groups  14 order  15 work  16 wake  17 closed  18 logs  19 claims
--       20 past  21 ended
-- ARGV  1 now  2 consumer  3 bytes  4 window  5 suspects  6 take  7 given  8 lane  9 seq
--       then per job: entry, member, token, mark
--       lane: one of the lines in which the worker claims; seq: the number of the claim in it,
--       which only grows; given: entries that it has taken over; take: -1 where the claim was
--       handed jobs in another partition, and takes nothing in this one; the rest as serve has it
-- RETURN {word, completed, started, others, delivered}: completed, started and others as serve has
--        them; delivered: how many new entries there were, or the error with which Redis refused to
--        deliver them. The word: new | again (this claim was handed entries before: those of them
--        that are still there are in started and others, delivered has their number, and nothing
--        else was taken or started) | superseded (a later claim of the lane was made: nothing was)
-- The ledger is written before anything is started. A call that was cut off before that has taken
-- entries that no claim names; they become idle, as those of a worker that was lost do. What was
-- delivered and did not start stays with its consumer. No job is handed out before it is due: an
-- offer is dropped, and its job waits in scheduled.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local dead, done, meta, stale = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local tags, line, lanes, holds = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local groups, order, work, wake = KEYS[13], KEYS[14], KEYS[15], KEYS[16]
local closed, logs, claims, past, ended = KEYS[17], KEYS[18], KEYS[19], KEYS[20], KEYS[21]
local keys = { scheduled = scheduled, jobs = jobs, runs = runs, ready = ready, dead = dead,
  done = done, meta = meta, stale = stale, tags = tags, past = past, ended = ended, line = line,
  lanes = lanes, holds = holds, groups = groups, order = order, work = work, wake = wake,
  closed = closed, logs = logs }
local serverMs, micros = clock()
local set, consumer, bytes = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local now = set or serverMs
local window, suspects = tonumber(ARGV[4]), tonumber(ARGV[5])
local take, given, lane, seq = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9])
local isElsewhere = take < 0
take = math.max(0, take)
local place = consumer .. ' ' .. lane

local state = redis.call('HMGET', meta, 'token', 'paused', 'held', 'gates', 'gate', 'closed',
  'logs')
keys.closed, keys.logs = state[6] and closed, state[7] and logs
if state[2] then
  --@lazy
  state[2] = pauseIn(state[2], state[4])
end
local gate
if state[4] then
  --@lazy
  gate = gateOf(state[4], state[5], now, not set and micros)
end
local ends = { now = now, window = window, consumer = consumer, sum = state[3], gate = gate }
local replies, areOk = completeAll(keys, ends, ARGV, 10 + 4 * given, #ARGV)
local completed = areOk and '' or replies

local before = redis.call('HGET', claims, place) or ''
local last, listed = before:match('^(%d+)(.*)$')
local isLater = last and tonumber(last) > seq
local isAgain = last and tonumber(last) == seq and listed ~= ''
local call = callOf(state, now, micros, consumer, bytes, window, suspects, take + given + 160)
call.gate = gate

-- Adds entry, member and due of what this claim was handed and has not ended since.
local function readLedger(entries)
  for entry in listed:gmatch('%d+%-%d+') do
    local found = redis.call('XRANGE', ready, entry, entry)[1]
    local size, fields, named = #entries, found and found[2] or {}, { member = '', due = '0' }
    for at = 1, #fields, 2 do
      named[fields[at]] = fields[at + 1]
    end
    if found then
      entries[size + 1], entries[size + 2], entries[size + 3] = entry, named.member, named.due
    end
  end
  return entries
end

-- Before it is started, what was taken over and delivered stands in the ledger.
local function writeLedger(entries, delivered)
  local words = { ('%.0f'):format(seq), isElsewhere and '-' or nil }
  for at = 1, #entries, 3 do
    words[#words + 1] = entries[at]
  end
  for at = 1, #delivered, 3 do
    words[#words + 1] = delivered[at]
  end
  local text = table.concat(words, ' ')
  if text ~= before then
    redis.call('HSET', claims, place, text)
  end
end

if isLater or isAgain then
  if gate and not call.isPaused then
    --@lazy
    ringBell(keys, gate)
  end
  local entries = isAgain and readLedger({}) or {}
  if #entries > 0 then
    startEntries(keys, call, entries, true)
  end
  return { isAgain and 'again' or 'superseded', completed, call.started, call.others,
    #entries / 3 }
end

local entries = {}
for at = 10, 9 + 4 * given, 4 do
  local size = #entries
  entries[size + 1], entries[size + 2], entries[size + 3] = ARGV[at], ARGV[at + 1], ARGV[at + 2]
end
local delivered, refusal = {}, nil
if take > 0 and not call.isPaused then
  delivered, refusal = deliver(ready, consumer, take)
end
if gate and not (refusal or call.isPaused) then
  --@lazy
  fill(keys, gate, consumer, delivered, take)
end
writeLedger(entries, delivered)
if #entries > 0 then
  startEntries(keys, call, entries, true)
end
if #delivered > 0 then
  startEntries(keys, call, delivered, nil, gate and gate.first)
end
return { 'new', completed, call.started, call.others, refusal or #delivered / 3 }
