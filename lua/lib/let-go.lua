-- let-go: entries of ready are done with.
-- GIVES   letGo(ready, entry, ...)
-- NEEDS   head
-- RULE    Deleted first: an entry that is cut off here is held by its consumer without being there,
--         which a reclaim clears away. The other way round nobody would ever deliver it again.
--         XDEL looks for each entry from the beginning of its node of the stream, XTRIM takes them
--         off in one go: from eight on it is cheaper to look whether they are the head of ready.
--         The last of them is left to XDEL, which removes a node with its last entry. XTRIM leaves
--         a node in which everything is deleted, and newer servers do not load such a stream.
local function letGo(ready, ...)
  local last
  if select('#', ...) >= 8 then
    --@lazy
    last = headOf(ready, { ... })
  end
  if last then
    redis.call('XTRIM', ready, 'MINID', last)
    -- @last-of-head
    redis.call('XDEL', ready, last)
  else
    -- @delete
    redis.call('XDEL', ready, ...)
  end
  -- @acknowledge
  redis.call('XACK', ready, 'workers', ...)
end
