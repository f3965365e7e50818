#!lua flags=allow-oom
-- seal: a set is complete: when none of its members is left, its callback is made, perhaps now.
-- USES  clock, tombstone, tags, digits, weight, nudge, sets, callback
-- KEYS  1 scheduled  2 jobs  3 meta  4 tags
-- ARGV  1 now  2 generation  3 set  4 member
--       now ms, '' = server time; set: its name; member: that of its callback
-- RETURN ok | already (it was sealed before) | over (its callback is there, or its end is
--        remembered) | unknown (there is no such set); or {'moved', generation} when the partition
--        has another generation
-- Members may still be added while one of them is open. Few bytes, also at the memory limit: the
-- record of the callback is there already.
local scheduled, jobs, meta, tags = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, generation, name, member = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local keys = { scheduled = scheduled, jobs = jobs, meta = meta, tags = tags }
local current = redis.call('HGET', meta, 'generation') or '0'
if current ~= generation then return { 'moved', current } end

local set = setOf(keys, name)
if not set then return redis.call('HSTRLEN', jobs, member) > 0 and 'over' or 'unknown' end
local isSealed = set.sealed ~= '0'
if not isSealed then
  set.sealed = '1'
  keepSet(keys, name, set)
end
callBack(keys, now, name)
return isSealed and 'already' or 'ok'
