-- ordering: jobs of a group in strict order that are given no time are due one after the other.
-- GIVES   orderingIn(keys, now): place(member, due, reply, text): the due time of a job that is
--         taken, what its reply says of that besides, and its text, '' = that of the due time;
--         note(): keeps what was given
-- NEEDS   line, vacating
-- RULE    The due time is now, or the millisecond after the last that was given in the group: so
--         jobs come in the order of their calls, from any process, whatever the clock did. At most
--         a thousand a second and group. What was given is kept before the jobs are. A job that is
--         replaced gives its group up before that: a call that is cut off in between has put its
--         job behind others, and never keeps a group for a job of later.
local function orderingIn(keys, now)
  local lasts, fresh = {}, {}

  local function place(member, due, reply, text)
    local group = groupIn(member)
    if reply == 'replaced' then
      vacate(keys, member, now)
    end
    if group == '' or due > 0 then return due, '', text end
    local last = lasts[group] or tonumber(redis.call('HGET', keys.order, ' ' .. group) or 0)
    lasts[group], fresh[group] = math.max(now, last + 1), true
    return lasts[group], (' %.0f'):format(lasts[group]), ''
  end

  local function note()
    local words = {}
    for group in pairs(fresh) do
      words[#words + 1], words[#words + 2] = ' ' .. group, ('%.0f'):format(lasts[group])
    end
    if words[1] then
      redis.call('HSET', keys.order, unpack(words))
    end
    fresh = {}
  end
  return { place = place, note = note }
end
