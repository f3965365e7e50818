-- mint: the fencing token of a start.
-- GIVES   mint(keys, call): a text. `call` has token, the last one, and count, the most starts that
--         the script may make; isMinted: that is written down. lastToken(call): the last token
--         that it may mint
-- RULE    Tokens of a partition only grow. What may be minted is written down before the first is.
--         They are whole numbers of 16 digits: `%d` makes a text of one in a third of the time of
--         `%.0f`.
local function lastToken(call)
  return ('%d'):format(call.token + call.count)
end

local function mint(keys, call)
  if not call.isMinted then
    redis.call('HSET', keys.meta, 'token', lastToken(call))
  end
  call.token, call.isMinted = call.token + 1, true
  return ('%d'):format(call.token)
end
