-- closing: nobody of a group, or of the queue, is let through until a time.
-- GIVES   close(keys, gate, group, untilMs, text): group '' = the queue; whether it is closed for
--         longer than before
-- NEEDS   gate, own
-- RULE    The longest wins. The mark in gate of K:meta that some group is closed comes first: a
--         call that is cut off then has closed nothing, and the same call does it all.
local function close(keys, gate, group, untilMs, text)
  local reason = text == '' and '' or ' ' .. text
  if group == '' then
    if untilMs <= gate.queueClosed then return false end
    gate.queueClosed = untilMs
    redis.call('HSET', keys.meta, 'closing', text)
    use(keys.meta, gate, 0)
    return true
  end
  local own = ownOf(keys, gate, group)
  -- @some-closed
  if untilMs > gate.groupsClosed then
    gate.groupsClosed = untilMs
    use(keys.meta, gate, 0)
  end
  if untilMs <= own.groupClosed then return false end
  own.groupClosed, own.why = untilMs, reason
  redis.call('HSET', keys.groups, group, ownText(own))
  return true
end
