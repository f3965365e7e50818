#!lua flags=no-writes
-- oldest: since when the oldest of the jobs that are due waits for its start, a page of ready at a
-- time.
-- USES  clock, run, tombstone, digits, line, group
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready
-- ARGV  1 after  2 limit
--       after: the entry before the page, '' = the first page; limit: entries per page
-- RETURN {now, since ms or '' = nothing waits, next page or '' = that was all, since when the first
--        in line waits, or ''}
-- The first page looks at scheduled and at the front of what nobody has read as well; the pages are
-- what workers hold. The first in line is told apart, so that a window can say why it is late. An
-- entry does not wait if its job is over, is in scheduled again, or runs, here or under another
-- entry. A job whose worker died waits since it was taken over, not since its due time. An entry
-- that is younger than one found costs no look.
local scheduled, jobs, runs, ready = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, after, limit = clock(), ARGV[1], tonumber(ARGV[2])
local since, group = math.huge, groupOf(ready)
local unread = group and group.delivered or '0-0'

local function waitsSince(entry, member, due)
  local run = runOf(redis.call('HGET', runs, member))
  local isHere = run and run.entry == entry
  if run and run.owner ~= '-' then
    local isThere = isHere or #redis.call('XRANGE', ready, run.entry, run.entry) > 0
    if isThere then return math.huge end
  end
  local tombstone, length = tombstoneOf(jobs, member)
  if tombstone or length == 0 then return math.huge end
  if redis.call('ZSCORE', scheduled, member) then return math.huge end
  local crashedMs = isHere and tonumber(run.history:match('.*\n{"t":(%d+)'))
  return crashedMs and math.max(due, crashedMs) or due
end

local function look(entries)
  for _, one in ipairs(entries) do
    local due = tonumber(one[2][4]) or now
    if due < since then
      since = math.min(since, waitsSince(one[1], one[2][2], due))
    end
  end
  return entries
end

if after == '' then
  local first = { 100000000000, now, 'WITHSCORES', 'LIMIT', 0, 1 }
  since = tonumber(redis.call('ZRANGEBYSCORE', scheduled, unpack(first))[2]) or since
  look(redis.call('XRANGE', ready, '(' .. unread, '+', 'COUNT', limit))
end
local from = after == '' and '-' or '(' .. after
local page = look(redis.call('XRANGE', ready, from, unread, 'COUNT', limit))
local nextPage = #page == limit and page[#page][1] or ''
local first = after == '' and redis.call('ZRANGEBYSCORE', scheduled, ('%.0f'):format(WAITS),
  ('(%.0f'):format(WAITS_END), 'WITHSCORES', 'LIMIT', 0, 1)[2]
return { ('%.0f'):format(now), since < now and ('%.0f'):format(since) or '', nextPage,
  dueText(first) or '' }
