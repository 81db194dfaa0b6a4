package toolchain

import (
	"strconv"
	"strings"
)

// shortName extracts the plain function name from an Itanium-mangled one: sdpa from _Z4sdpaPKhPf, scale from
// _ZN4attn5scaleILi64EEEvPf. Names it does not understand come back whole: a long name is better than a
// wrong one.
func shortName(mangled string) string {
	rest, ok := strings.CutPrefix(mangled, "_Z")
	if !ok {
		return mangled
	}
	nested := strings.HasPrefix(rest, "N")
	if nested {
		rest = strings.TrimLeft(rest[1:], "rVK")
	} else {
		rest = strings.TrimPrefix(rest, "L")
	}
	for {
		name, after, ok := sourceName(rest)
		if !ok {
			return mangled
		}
		if nested && strings.HasPrefix(after, "I") {
			if after, ok = skipTemplateArguments(after); !ok {
				return mangled
			}
		}
		if !nested || strings.HasPrefix(after, "E") {
			return name
		}
		rest = after
	}
}

// sourceName splits a length-prefixed name off s.
func sourceName(s string) (name, after string, ok bool) {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.Atoi(s[:digits])
	if err != nil || n == 0 || n > len(s)-digits {
		return "", s, false
	}
	return s[digits : digits+n], s[digits+n:], true
}

// skipTemplateArguments skips a balanced I…E. It gives up on expressions, arrays and literals of a named type.
func skipTemplateArguments(s string) (after string, ok bool) {
	depth := 0
	for s != "" {
		switch c := s[0]; {
		case c == 'I' || c == 'N' || c == 'J' || c == 'F':
			depth++
			s = s[1:]
		case c == 'E':
			depth--
			s = s[1:]
			if depth == 0 {
				return s, true
			}
		case c == 'L' && len(s) > 1 && 'a' <= s[1] && s[1] <= 'z':
			end := strings.IndexByte(s, 'E')
			if end < 0 {
				return s, false
			}
			s = s[end+1:]
		case c == 'L' || c == 'X' || c == 'D' || c == 'A':
			return s, false
		case '0' <= c && c <= '9':
			if _, s, ok = sourceName(s); !ok {
				return s, false
			}
		case c == 'S' || c == 'T':
			// Substitutions and template parameters: S_, S1_, St, T0_.
			s = strings.TrimLeft(s[1:], "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
			if s == "" {
				return s, false
			}
			s = s[1:]
		default:
			s = s[1:]
		}
	}
	return s, false
}
