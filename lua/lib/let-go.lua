-- let-go: entries of ready are done with.
-- GIVES   letGo(ready, entry, ...)
-- USED BY  bury, commit, complete, defer, expire, relay, release, retry, serve, start
-- RULE    Deleted first: an entry that is cut off here is held by its consumer without being there,
--         which a reclaim clears away. The other way round nobody would ever deliver it again.
local function letGo(ready, ...)
  -- @delete
  redis.call('XDEL', ready, ...)
  -- @acknowledge
  redis.call('XACK', ready, 'workers', ...)
end
