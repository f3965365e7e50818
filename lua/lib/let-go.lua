-- let-go: entries of ready are done with.
-- GIVES   letGo(ready, entry, ...)
-- NEEDS   head
-- RULE    Deleted first: an entry that is cut off here is held by its consumer without being there,
--         which a reclaim clears away. The other way round nobody would ever deliver it again.
--         XDEL looks for each entry from the beginning of its node of the stream, XTRIM takes them
--         off in one go: from eight on it is cheaper to look whether they are the head of ready.
local function letGo(ready, ...)
  local isTrimmed = false
  if select('#', ...) >= 8 then
    -- rarely
    local ms, seq = (headOf(ready, { ... }) or ''):match('^(%d+)%-(%d%d?%d?%d?%d?%d?%d?)$')
    if ms then
      isTrimmed = true
      redis.call('XTRIM', ready, 'MINID', ms .. '-' .. (tonumber(seq) + 1))
    end
  end
  if not isTrimmed then
    -- @delete
    redis.call('XDEL', ready, ...)
  end
  -- @acknowledge
  redis.call('XACK', ready, 'workers', ...)
end
