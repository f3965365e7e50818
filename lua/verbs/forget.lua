#!lua flags=allow-oom
-- forget: a process that has no heartbeat is no longer listed.
-- KEYS  1 alive  2 beat
-- ARGV  1 process
--       process: its id
-- RETURN ok | living (it has a heartbeat, and stays) | gone (it is not listed)
-- One step: a process that was away and is back prolongs a heartbeat that is there, and would never
-- enter the list again.
local alive, beat, process = KEYS[1], KEYS[2], ARGV[1]
if redis.call('EXISTS', beat) == 1 then return 'living' end
return redis.call('SREM', alive, process) == 1 and 'ok' or 'gone'
