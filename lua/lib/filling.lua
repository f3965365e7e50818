-- filling: what a worker asked for and ready did not have is let through and delivered at once.
-- GIVES   fill(keys, gate, consumer, delivered, take): adds to `delivered`, which has entry, member
--         and due of each; how many are in line now
-- NEEDS   group, delivery, letting-through
-- RULE    While lanes are open, one entry more than the worker takes stays in ready: Redis gives it
--         to the next worker that waits in a read, and that one does the same. So no free slot
--         stays free, without a leader.
local function fill(keys, gate, consumer, delivered, take)
  local missing = take - #delivered / 3
  -- @open-lanes
  local isOpen = redis.call('ZCARD', keys.lanes) > 0
  -- @some-missing
  if isOpen and (missing > 0 or undeliveredIn(keys.ready, 1) == 0) then
    -- @fill-slots
    local given = letThrough(keys, gate, missing + 1)
    -- @some-delivered
    if given > 0 and missing > 0 then
      for _, word in ipairs((deliver(keys.ready, consumer, missing))) do
        delivered[#delivered + 1] = word
      end
    end
    if given > missing then
      redis.pcall('SPUBLISH', keys.work, '1')
    end
  end
  return redis.call('ZCARD', keys.line)
end
