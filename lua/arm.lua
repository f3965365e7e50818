#!lua
-- arm: a schedule gets its place among those that fire, and is looked at at once. What it fired before stays known.
-- KEYS  1 fires  2 fired  3 meta  4 wake
-- ARGV  1 generation  2 name
-- RETURN armed | again (it was there) | unreadable (its state is left as it is); or {'moved', generation} when the partition
--        has another generation
-- Each call changes the state: what a leader computed from the definition before it, fires and forgets nothing after it.
-- No allow-oom: a full Redis refuses it up front.
local fires, fired, meta, wake, name = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[2]
local generation = redis.call('HGET', meta, 'generation') or '0'
if generation ~= ARGV[1] then return { 'moved', generation } end
local state = redis.call('HGET', fired, name)
local known, arms = (state or '0 0 0 - - 0'):match('^(%d+ %d+ %d+ [!-~]+ [!-~]+) (%d+)$')
if known then redis.call('HSET', fired, name, ('%s %.0f'):format(known, arms + 1)) end
redis.call('ZADD', fires, 0, name)
redis.call('SPUBLISH', wake, 'schedules')
return not known and 'unreadable' or state and 'again' or 'armed'
