package manifest

import "testing"

// A toggle that only says how large the scratch is belongs to the call: with another value a launch gets other memory.
func TestScratchIsPartOfTheCall(t *testing.T) {
	base := edited(t, goodSteps, "dtype: u32, shape: [S]", "dtype: u32, shape: [S*PARTS]", "toggles:\n", "toggles:\n  PARTS: {values: [1, 2], default: 1, layer: micro}\n")
	one, two := parsed(t, base), parsed(t, edited(t, base, "default: 1", "default: 2"))
	same(t, "the same call", one.Call("default") == two.Call("default"), false)
	same(t, "the same launches", one.Launches("default") == two.Launches("default"), false)
	unused := edited(t, goodSteps, "toggles:\n", "toggles:\n  PARTS: {values: [1, 2], default: 1, layer: micro}\n")
	one, two = parsed(t, unused), parsed(t, edited(t, unused, "default: 1", "default: 2"))
	same(t, "the same call with a toggle that nothing names", one.Call("default") == two.Call("default"), true)
}

// On a processor the entry is the whole call.
func TestCallOnAProcessor(t *testing.T) {
	base, other := parsed(t, goodCPU), parsed(t, edited(t, goodCPU, "entry: sdpa_fp8\n", "entry: other\n"))
	same(t, "the same call", base.Call("default") == other.Call("default"), false)
	same(t, "the same launches", base.Launches("default") == other.Launches("default"), false)
	same(t, "the same call as itself", base.Call("default"), parsed(t, goodCPU).Call("default"))
}

// Two manifests of one dispatch run the same at every size. What agrees at every size that is
// tried, and not at others, is another one.
func TestDispatch(t *testing.T) {
	choice := parsed(t, goodChoice)
	for name, other := range map[string]string{
		"condition": edited(t, goodChoice, "S >= 1024", "S >= 1024 && S != 3001"),
		"limits":    edited(t, goodChoice, "limits: {S:", "limits: {D: 64, S:"),
	} {
		m := parsed(t, other)
		same(t, name+": the same launches", m.Launches(Choice) == choice.Launches(Choice), true)
		same(t, name+": the same dispatch", m.Dispatch(Choice) == choice.Dispatch(Choice), false)
	}
	described := parsed(t, goodChoice+"description: Words.\n")
	same(t, "dispatch with a description", described.Dispatch(Choice), choice.Dispatch(Choice))
}
