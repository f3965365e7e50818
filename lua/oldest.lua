#!lua flags=no-writes
-- oldest: since when the oldest of the jobs that are due waits for its start, a page of ready at a time.
-- KEYS  1 scheduled  2 jobs  3 runs  4 ready
-- ARGV  1 after  2 limit
--       after: the entry before the page, '' = the first page; limit: entries per page
-- RETURN {now, since ms or '' = nothing waits, next page or '' = that was all}
-- The first page looks at scheduled and at the front of what nobody has read as well; the pages are what workers hold. An
-- entry does not wait if its job is over, is in scheduled again, or runs, here or under another entry. A job whose worker
-- died waits since it was taken over, not since its due. An entry that is younger than one found costs no look.
local scheduled, jobs, runs, ready, after, limit = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], tonumber(ARGV[2])
local t, since, unread = redis.call('TIME'), math.huge, '0-0'
local now = t[1] * 1000 + math.floor(t[2] / 1000)

local function waitsSince(entry, member, due)
  local here, owner, history = (redis.call('HGET', runs, member) or ''):match('^%d+ %d+ %d+ %d+ %d+ (%S+) (%S+)(.*)$')
  local isRunning = here and owner ~= '-' and (here == entry or #redis.call('XRANGE', ready, here, here) > 0)
  if isRunning then return math.huge end
  local isShort = redis.call('HSTRLEN', jobs, member) < 200
  if isShort and (redis.call('HGET', jobs, member) or '.'):byte() == 46 then return math.huge end
  if redis.call('ZSCORE', scheduled, member) then return math.huge end
  return here == entry and math.max(due, tonumber(history:match('.*\n{"t":(%d+)') or due)) or due
end

local function look(entries)
  for _, one in ipairs(entries) do
    local due = tonumber(one[2][4]) or now
    if due < since then since = math.min(since, waitsSince(one[1], one[2][2], due)) end
  end
  return entries
end

for _, group in ipairs(redis.call('EXISTS', ready) == 1 and redis.call('XINFO', 'GROUPS', ready) or {}) do
  if group[2] == 'workers' then unread = group[8] end
end
if after == '' then
  since = tonumber(redis.call('ZRANGEBYSCORE', scheduled, 100000000000, now, 'WITHSCORES', 'LIMIT', 0, 1)[2]) or since
  look(redis.call('XRANGE', ready, '(' .. unread, '+', 'COUNT', limit))
end
local page = look(redis.call('XRANGE', ready, after == '' and '-' or '(' .. after, unread, 'COUNT', limit))
return { ('%.0f'):format(now), since < now and ('%.0f'):format(since) or '', #page < limit and '' or page[#page][1] }
