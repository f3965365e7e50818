#!lua flags=allow-oom
-- retire: a consumer that is believed dead and provably owns nothing is removed from the group.
-- KEYS  1 ready
-- ARGV  1 consumer
-- RETURN 'ok' | 'busy' (it still owns entries, which DELCONSUMER would silently destroy) | 'gone'
local ready, consumer = KEYS[1], ARGV[1]
if redis.call('EXISTS', ready) == 0 then return 'gone' end
if #redis.call('XPENDING', ready, 'workers', '-', '+', 1, consumer) > 0 then return 'busy' end
redis.call('XGROUP', 'DELCONSUMER', ready, 'workers', consumer)
return 'ok'
