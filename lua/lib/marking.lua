-- marking: a queue begins or ends to have limits that older processes do not know: strict order,
-- two rates, limits that it shares with others, or costs of jobs.
-- GIVES   hasMark(paused, share): paused of K:meta has the mark that a share asks for, and no
--         other; keepMarked(keys, paused, share, words): writes these fields of K:meta, of which
--         gates is one, and the mark; endOrder(keys, before, paused, share): where the share ends
--         it, nobody has a group any more
-- NEEDS   gate, pausing
-- RULE    The mark comes with the letters of the share, in one write, and goes after them: in
--         between the partition counts as paused, to old and new processes alike. Order begins with
--         who is let through next; what runs counts by its hold alone. Where letters or mark are
--         there alone, an older process has taken the others away, and order goes on.
local VERSION_MARK = '!0.3.0'

local function hasMark(paused, share)
  return versionIn(paused) == (needsMark(share) and VERSION_MARK or nil)
end

local function keepMarked(keys, paused, share, words)
  local text = pausedAs(needsMark(share) and VERSION_MARK, saidIn(paused))
  if text then
    words[#words + 1], words[#words + 2] = 'paused', text
  end
  redis.call('HSET', keys.meta, unpack(words))
  if paused and not text then
    redis.call('HDEL', keys.meta, 'paused')
  end
end

local function endOrder(keys, before, paused, share)
  local wasStrict = versionIn(paused) or lettersIn(before or '')
  if wasStrict and not lettersIn(share) then
    redis.call('DEL', keys.order)
  end
end
