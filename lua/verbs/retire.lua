#!lua flags=allow-oom
-- retire: a consumer that is believed dead and provably owns nothing is removed from the group.
-- KEYS  1 ready
-- ARGV  1 consumer
-- RETURN 'ok' | 'busy' (it still owns entries, which DELCONSUMER would silently destroy) |
--        'gone' (it is not there)
-- Whether it is there, only making it can tell without listing all others: after a mass death that
-- list is long.
local ready, consumer = KEYS[1], ARGV[1]
if redis.call('EXISTS', ready) == 0 then return 'gone' end
if #redis.call('XPENDING', ready, 'workers', '-', '+', 1, consumer) > 0 then return 'busy' end
local made = redis.call('XGROUP', 'CREATECONSUMER', ready, 'workers', consumer)
redis.call('XGROUP', 'DELCONSUMER', ready, 'workers', consumer)
return made == 1 and 'gone' or 'ok'
