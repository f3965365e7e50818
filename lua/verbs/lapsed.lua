#!lua flags=no-writes
-- lapsed: which jobs are past their expiry and were never started, a slice at a time of those that
-- are due, and that no worker has.
-- USES  clock, run, tombstone, budget, lateness, digits, line, place, group, head
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready
-- ARGV  1 now  2 cursor  3 limit  4 bytes
--       now ms, '' = server time; cursor: '' = from the beginning; limit: jobs to look at; bytes of
--       records per call
-- RETURN {cursor, '' = the end; looked; then per job: entry, '' = it is in scheduled; member; due}
-- What is due and not in ready comes first, then who waits in line, then entries that nobody has
-- read. Of a job that has had a start only a worker knows whether somebody takes half-done work
-- back, so such a job is left to its next start. A job whose record may not expire costs a read of
-- that record.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, cursor = clock(ARGV[1]), ARGV[2]
local limit, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local found, spent = { '', 0 }, 0
local UNREAD = 'r 0-0'

-- Whether there was room to look at it.
local function look(entry, member, due)
  local record
  spent, record = readWithin(jobs, member, bytes, spent)
  if not spent then return false end
  found[2] = found[2] + 1
  local header = headerOf(record)
  if not (header and header:find(';[el]=')) then return true end
  local run = runOf(redis.call('HGET', runs, member) or NEVER_RAN) or {}
  local isUnbegun = run.owner == '-' and tonumber(run.attempts) == 0
  if isUnbegun and isLate(header, run.entry, askedOf(record), run.due, due, now) then
    local size = #found
    found[size + 1], found[size + 2], found[size + 3] = entry, member, ('%.0f'):format(due)
  end
  return true
end

local function lookScheduled(from)
  local words, last = redis.call('ZRANGE', scheduled, from, from + limit - 1, 'WITHSCORES'), nil
  for at = 1, #words, 2 do
    local member, score = words[at], words[at + 1]
    local due = dueOf(score)
    if due > now then return due < WAITS and 's ' .. ('%.0f'):format(WAITS - 1) .. ' ' or UNREAD end
    if not look('', member, due) then return last end
    last = 's ' .. score .. ' ' .. member
  end
  return #words == 2 * limit and last or UNREAD
end

local function lookUnread(after)
  local group = groupOf(ready)
  local from = group and comesAfter(group.delivered, after) and group.delivered or after
  local entries, last = redis.call('XRANGE', ready, '(' .. from, '+', 'COUNT', limit), nil
  for _, entry in ipairs(entries) do
    if not look(entry[1], entry[2][2], tonumber(entry[2][4]) or now) then return last end
    last = 'r ' .. entry[1]
  end
  return #entries == limit and last or ''
end

local score, member = cursor:match('^s (%S+) (.*)$')
if cursor == '' or score then
  found[1] = lookScheduled(score and firstBehind(scheduled, score, member) or 0)
else
  found[1] = lookUnread(cursor:sub(3))
end
return found
