#!lua
-- gather: a set begins: jobs with its tag are its members, and when it is sealed and all are over,
-- its callback is made.
-- USES  clock, tombstone, sets, stray
-- KEYS  1 jobs  2 meta  3 tags
-- ARGV  1 now  2 generation  3 set  4 callback
--       now ms, '' = server time; generation: see schedule; set: its name; callback: a dot, ms
--       from the end of the last member until it is due, a space, its member, a space, and its
--       record, asked due time 0
-- RETURN ok | already (it is there, with this callback) | exists (with another callback) | over
--        (its callback is there, or its end is remembered) | lives (a member of an earlier set of
--        this name is not over, and would count in this one: nothing was changed); or
--        {'moved', generation} when the partition has another generation
-- Entries of members that do not live, which calls that were cut off left, go first: at most 200,
-- else the same call again. The entry that lists the set comes before both its fields, which are
-- written in one step. No allow-oom: a full Redis refuses the call up front.
local jobs, meta, tags = KEYS[1], KEYS[2], KEYS[3]
local now, sign, layout = clock(ARGV[1]), ARGV[2]:match('^([=+]?)(.*)$')
local name, callback = ARGV[3], ARGV[4]
local keys = { jobs = jobs, meta = meta, tags = tags }
local generation = redis.call('HGET', meta, 'generation')
if (generation or sign ~= '=' and '0') ~= layout then return { 'moved', generation or '0' } end

local set = setOf(keys, name)
if set then
  local isSame = redis.call('HGET', jobs, '\0then\0' .. name) == callback
  return set.sealed == '2' and 'over' or isSame and 'already' or 'exists'
end
if redis.call('HSTRLEN', jobs, callback:match('^%.%d+ (%S+) ')) > 0 then return 'over' end
local left, earlier = 200, hasOpen(tags, name)
while earlier do
  if left == 0 or not strayOf(keys, earlier) then return 'lives' end
  redis.call('ZREM', tags, earlier)
  left, earlier = left - 1, hasOpen(tags, name)
end
redis.call('ZADD', tags, 0, '=sets\0' .. name)
keepSet(keys, name, { sealed = '0', made = ('%.0f'):format(now), d = 0, x = 0, c = 0, e = 0 },
  '\0then\0' .. name, callback)
if sign == '+' and not generation then
  redis.call('HSET', meta, 'generation', layout)
end
return 'ok'
