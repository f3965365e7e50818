-- pending: who holds an entry of ready.
-- GIVES   isPending(ready, entry): whether anybody does; isPending(ready, entry, consumer): he does
-- RULE    Redis knows who holds what, and nothing else is asked. The group must be there.
local function isPending(ready, entry, ...)
  return #redis.call('XPENDING', ready, 'workers', entry, entry, 1, ...) > 0
end
