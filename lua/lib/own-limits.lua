-- own-limits: the limits that single groups have of their own.
-- GIVES   keepLimits(groups, list): these and no others: names and limits, one after the other
-- RULE    The empty field of K:groups has all their names.
local function keepLimits(groups, list)
  local gone, names, words = {}, {}, {}
  for name in (redis.call('HGET', groups, '') or ''):gmatch('%S+') do
    gone[#gone + 1] = ' ' .. name
  end
  for at = 1, #list, 2 do
    names[#names + 1] = list[at]
    words[#words + 1], words[#words + 2] = ' ' .. list[at], list[at + 1]
  end
  -- @gone-limits
  if #gone > 0 then
    redis.call('HDEL', groups, '', unpack(gone))
  end
  if #words > 0 then
    redis.call('HSET', groups, '', table.concat(names, ' '), unpack(words))
  end
end
