#!lua
-- arm: a schedule gets its place among those that fire, and is looked at at once. What it fired before stays known.
-- KEYS  1 fires  2 fired  3 meta  4 wake
-- ARGV  1 generation  2 name
-- RETURN armed | again (it was there); or {'moved', generation} when the partition has another generation
-- No allow-oom: a full Redis refuses it up front.
local fires, fired, meta, wake, name = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]
local generation = redis.call('HGET', meta, 'generation') or '0'
if generation ~= ARGV[1] then return { 'moved', generation } end
local fresh = redis.call('HSETNX', fired, name, '0 0 0 - -')
redis.call('ZADD', fires, 0, name)
redis.call('SPUBLISH', wake, 'schedules')
return fresh == 1 and 'armed' or 'again'
