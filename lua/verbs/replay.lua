#!lua
-- replay: a dead letter becomes a scheduled job again, with fresh budgets and no expiry; attempts
-- go on.
-- USES  clock, log-lines, run, tombstone, tags, sets, rejoining, weight, digits, line, gate,
--       regaining, closed-tags, nudge
-- KEYS  1 scheduled  2 jobs  3 runs  4 dead  5 done  6 meta  7 wake  8 tags  9 closed  10 order
--       11 logs
-- ARGV  1 now  2 generation  3 deadLetter  4 due
--       now ms, '' = server time; deadLetter: entry id in dead; due ms, '' = now
-- RETURN {'ok', due, member, place} (place: in strict order, first = the job has its group as
--        before, last = its group has gone on) | {'live', member} (a job of this id is live:
--        the dead letter stays) | {'closed', until, tag} (no job with the tag may start: the dead
--        letter stays) | {'gone'} (no such dead letter) | {'empty', member} (the dead letter has no
--        record to replay) | {'moved', generation}
-- Zset, run and record are written before the dead letter is removed. If the call was cut off in
-- between, the live job has the dead letter's next generation and its token: the second call then
-- only removes the dead letter and replies ok. The dead letter of another death of the same job
-- stays. A debounced job keeps the mark of its tombstone where that is the later one: a call that
-- came after the one in the dead letter is still known, and its older ones are still older. A
-- member of an earlier set of a name is none of the set that has the name now.
local scheduled, jobs, runs, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local done, meta, wake, tags, closed = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local order, logs = KEYS[10], KEYS[11]
local keys = { jobs = jobs, tags = tags, logs = logs }
local now, layout, deadLetter = clock(ARGV[1]), ARGV[2], ARGV[3]
local due = ('%.0f'):format(tonumber(ARGV[4]) or now)

local state = redis.call('HMGET', meta, 'generation', 'held', 'closed', 'gates', 'logs')
keys.logs = state[5] and logs
local current = state[1] or '0'
if current ~= layout then return { 'moved', current } end
local found = redis.call('XRANGE', dead, deadLetter, deadLetter)[1]
if not found then return { 'gone' } end
local fields = {}
for at = 1, #found[2], 2 do
  fields[found[2][at]] = found[2][at + 1]
end
local member, record = fields.member, fields.record
if not member or not record or record == '' then return { 'empty', member or '' } end

local function withoutLateness(asked, header)
  return asked .. header:gsub(';[elp]=%w+', '')
end
record = record:gsub('^(1%w+)(;[^|]*)', withoutLateness)
local isMember = record:find(' set:', 1, true)
if isMember and diedBefore(keys, record, fields.at) then
  --@lazy
  record = setless(record)
end
local generation = (tonumber(fields.generation) or 0) + 1
local here = redis.call('HGET', jobs, member)

local function unmarked(text)
  return text:find('^1%w+[^|]-;d=') and text:gsub('^(1[^|]-);m=%w+%.%x+', '%1') or text
end

local function bare(text)
  return (unmarked(isMember and setless(text) or text))
end

local function withLaterMark(tombstone)
  local order, mark = record:match('^1[^|]-;m=(%w+)%.'), tombstone:match('^%.%l(%w+ %x+)')
  -- @debounced
  local later = order and unmarked(record) ~= record and mark and mark:match('^%w+')
  -- @later-mark
  if not later or tonumber(later, 36) <= tonumber(order, 36) then return record end
  return (record:gsub(';m=%w+%.%x+', ';m=' .. mark:gsub(' ', '.'), 1))
end

local function placeInGroup()
  return lettersIn(state[4] or '') and regain(order, deadLetter, member)
end

if isTombstone(here) then
  record = withLaterMark(here)
elseif here then
  local run = runOf(redis.call('HGET', runs, member))
  local isSame = run and bare(here) == bare(record) and run.token == fields.token
  if not isSame or tonumber(run.generation) ~= generation then return { 'live', member } end
  local place = placeInGroup()
  -- @live-again
  redis.call('ZREM', done, member)
  dropDeadLines(keys.logs, { deadLetter })
  redis.call('XDEL', dead, deadLetter)
  return { 'ok', dueText(redis.call('ZSCORE', scheduled, member)) or due, member, place or nil }
end
local tag, last
if state[3] then
  --@lazy
  tag, last = closedBy(closed, record)
end
if tag then return { 'closed', last, tag } end
local run = freshRun(fields.token or '0', generation, fields.attempts or '0', due)
linesFromDead(keys.logs, member, deadLetter)
-- @index-job
redis.call('ZADD', scheduled, due, member)
redis.call('HSET', runs, member, run)
local text = tagsOf(record)
if text and text:find(' set:', 1, true) then
  --@lazy
  rejoin(keys, member, text)
else
  addTags(tags, { { member = member, text = text } })
end
-- @keep-record
redis.call('HSET', jobs, member, record)
if state[2] then
  --@lazy
  reweigh(meta, #record, 1, state[2])
end
redis.call('HINCRBY', meta, 'n.replayed', 1)
nudge(meta, wake, tonumber(due))
redis.call('ZREM', done, member)
dropDeadLines(keys.logs, { deadLetter })
local place = placeInGroup()
-- @forget-dead-letter
redis.call('XDEL', dead, deadLetter)
return { 'ok', due, member, place or nil }
