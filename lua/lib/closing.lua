-- closing: nobody of a group, or of the queue, is let through until a time.
-- GIVES   close(keys, gate, group, untilMs, text, by): group '' = the queue; by nil: a handler asks
--         for it; whether it is closed for longer than before
-- NEEDS   rates, own, diary
-- RULE    The longest wins. The mark in gate of K:meta that some group is closed comes first: a
--         call that is cut off then has closed nothing, and the same call does it all. The diary
--         tells of it, but not of groups that handlers close: they would push all else out.
local function close(keys, gate, group, untilMs, text, by)
  local reason = text == '' and '' or ' ' .. text
  local words = { 'what', 'closed', 'group', group, 'until', ('%.0f'):format(untilMs),
    'by', by or '', 'why', text }
  if group == '' then
    local before = gate.queueClosed
    if untilMs <= before then return false end
    gate.queueClosed = untilMs
    redis.call('HSET', keys.meta, 'closing', text)
    use(keys.meta, gate, 0)
    enterClosing(keys.diary, gate.now, words, before)
    return true
  end
  local own = ownOf(keys, gate, group)
  -- @some-closed
  if untilMs > gate.groupsClosed then
    gate.groupsClosed = untilMs
    use(keys.meta, gate, 0)
  end
  local before = own.groupClosed
  if untilMs <= before then return false end
  own.groupClosed, own.why = untilMs, reason
  redis.call('HSET', keys.groups, group, ownText(own))
  if by then
    enterClosing(keys.diary, gate.now, words, before)
  end
  return true
end
