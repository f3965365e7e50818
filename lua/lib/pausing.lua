-- pausing: whether a partition is paused, and the mark of what only newer processes understand.
-- GIVES   versionIn(paused): the mark that paused of K:meta begins with, and the least version, or
--         nothing; saidIn(paused): what a real pause says, its time and its reason, or nothing;
--         pauseIn(paused, share): the same, or the mark where gates of K:meta, which is share, does
--         not say what it is for; pausedAs(mark, said): both as paused has them, nothing = neither
-- NEEDS   gate
-- RULE    In a queue in strict order, with two rates, with limits that others share or with costs
--         of jobs, paused begins with a mark and the least version, and what a real pause says
--         comes behind it. Older scripts take that for a pause, and start nothing. Where the mark
--         is there and gates does not say why, an older process has written gates: the mark is
--         taken for a pause, until the leader has given the rest back.
local function versionIn(paused)
  return (paused or ''):match('^!%S+')
end

local function saidIn(paused)
  if versionIn(paused) then return paused:match('^!%S+ (.+)$') end
  return paused or nil
end

local function pauseIn(paused, share)
  local mark = versionIn(paused)
  return saidIn(paused) or mark and not needsMark(share or '') and mark or nil
end

local function pausedAs(mark, said)
  return mark and said and mark .. ' ' .. said or mark or said
end
