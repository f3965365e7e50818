-- named: the name of a job, from its record.
-- GIVES   nameIn(record): its text in JSON, with the quotes; nil where it has none
-- RULE    It stands at the top of the JSON, in ours first, in those of others anywhere. Nothing is
--         parsed: a name deeper inside, or within a string, is told by the brackets and quotes
--         before it. After twenty places that are none, nobody looks any further.
local function nameIn(record)
  local function stringAt(text, from)
    local to, mark = from, nil
    repeat
      to = text:find('["\\]', to + 1)
      mark = to and text:sub(to, to)
      to = mark == '\\' and to + 1 or to
    until mark ~= '\\'
    return to and text:sub(from, to)
  end

  -- Strings are taken out of what stands before it: a quote that is left has it inside one.
  local function isAtTop(before)
    local bare = before:gsub('\\.', ''):gsub('"[^"]*"', '')
    local opened, closed = select(2, bare:gsub('[{%[]', '')), select(2, bare:gsub('[}%]]', ''))
    return opened - closed == 1 and not bare:find('"', 1, true)
  end

  local body, to, quote = record:match('|(.*)$') or '', 0, nil
  for _ = 1, 20 do
    local from
    from, to, quote = body:find('"n"%s*:%s*()"', to + 1)
    if not from then return nil end
    if isAtTop(body:sub(1, from - 1)) then return stringAt(body, quote) end
  end
end
