-- diary: what rarely happens to a partition is written down, for people who look at it later.
-- GIVES   enter(diary, words): fields and their values, one after the other; what is '' is left
--         out. enterClosing(diary, now, words, before): the same of a closing, which takes the
--         place of the newest entry where it prolongs that one, whose end was before, ms
-- RULE    An entry comes after its change, and a refusal to write it undoes nothing: a call that
--         is cut off between the two has changed something that the diary does not tell, and what
--         ends it says since when it was so. The time of an entry is that of its id, which only
--         grows, as tokens do. A thousand are kept, the diary of a queue that was removed by an
--         older process for 90 days.
local function enter(diary, words)
  local said = {}
  for at = 1, #words, 2 do
    if words[at + 1] ~= '' then
      said[#said + 1], said[#said + 2] = words[at], words[at + 1]
    end
  end
  redis.pcall('XADD', diary, 'MAXLEN', 1000, '*', unpack(said))
  redis.pcall('PEXPIRE', diary, 7776000000)
end

-- Many jobs that are told to wait prolong one closing; each by an entry would push all else out.
local function enterClosing(diary, now, words, before)
  local newest = before > now and redis.pcall('XREVRANGE', diary, '+', '-', 'COUNT', 1)[1]
  local was = {}
  for at = 1, newest and #newest[2] or 0, 2 do
    was[newest[2][at]] = newest[2][at + 1]
  end
  local isSame = was.what == 'closed' and tonumber(was['until']) == before
  for at = 1, #words, 2 do
    if words[at] == 'group' and words[at + 1] ~= (was.group or '') then
      isSame = false
    end
  end
  if isSame then
    words[#words + 1], words[#words + 2] = 'from', was.from or newest[1]:match('^%d+')
  end
  enter(diary, words)
  if isSame then
    redis.pcall('XDEL', diary, newest[1])
  end
end
