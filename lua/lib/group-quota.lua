-- group-quota: whether a group has room for one job more, where groups have a limit of that.
-- GIVES   groupRoomIn(keys, gate, text): `text` is the field gates of meta. refusal(member, record,
--         reply): `full` where the group of a new job has no room, `uncounted` where the record of
--         a job of a group does not say that it counts; count(member, tags, before): the job is
--         taken, with these tags of its header and those of the record that it replaces; nothing
--         where a foreign caller has left the keys out
-- NEEDS   tags, line, own
-- RULE    A job counts in its group while its header has the tag =group: the index of tags has all
--         of these that are pending, and as the group stands in front of the member, those of one
--         group stand together. A job without the tag was made when its group had no such limit, or
--         by a producer that does not know of it: it counts nowhere and is not refused. A call that
--         was cut off has its place in scheduled already, and gets through when it is made again.
local function groupRoomIn(keys, gate, text)
  if not (keys.tags and keys.groups) then return nil end
  local all, there = tonumber(text:match(' p(%d+)')), {}

  local function isCounted(tags)
    return tags and (',' .. tags .. ','):find(', group,', 1, true)
  end

  local function pendingIn(group)
    local of = '=group\0j:{' .. group
    if not there[group] then
      there[group] = redis.call('ZLEXCOUNT', keys.tags, '[' .. of .. '}', '(' .. of .. '~')
    end
    return there[group]
  end

  local function refusal(member, record, reply)
    local group = groupIn(member)
    local isIn = reply == 'ok' or reply == 'replaced'
    if group == '' or not isIn then return nil end
    if not isCounted(tagsOf(record)) then return 'uncounted' end
    local own = gate.lengths ~= '-' and ownOf(keys, gate, group).pending
    local most = own or all
    -- Also of one that is replaced the others are counted: its own place is written later.
    local isFull = most > 0 and pendingIn(group) >= most and reply == 'ok'
    if not isFull or redis.call('ZSCORE', keys.scheduled, member) then return nil end
    return ('full group %.0f %.0f'):format(most, pendingIn(group))
  end

  local function count(member, tags, before)
    local group = isCounted(tags) and not isCounted(before) and groupIn(member)
    if group and there[group] then
      there[group] = there[group] + 1
    end
  end
  return { refusal = refusal, count = count }
end
