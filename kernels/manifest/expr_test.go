package manifest

import (
	"math"
	"strings"
	"sync"
	"testing"
)

// exprOf reads an expression the way a manifest's is read.
func exprOf(t *testing.T, text string) *Expr {
	t.Helper()
	m, err := Parse("kernel.yaml", []byte(strings.Replace(goodCPU, "value: S}", "value: '"+text+"'}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	return m.Arguments[3].Value
}

func TestEval(t *testing.T) {
	env := Env{"B": 2, "H": 3, "S": 100, "D": 64}
	for _, tt := range []struct {
		text string
		want int64
	}{
		{"64", 64},
		{"S", 100},
		{"ceildiv(S, 64)", 2},
		{"ceildiv(128, 64)", 2},
		{"ceildiv(0 - S, 64)", -1},
		{"ceildiv(9007199254740991, 2)", 1 << 52},
		{"roundup(S, 64)*H", 384},
		{"pow2ceil(S)", 128},
		{"pow2ceil(D)", 64},
		{"pow2ceil(0)", 1},
		{"min(S, D, B)", 2},
		{"max(S - D, B)", 36},
		{"floor(S/D)", 1},
		{"ceil(S/D)", 2},
		{"S % D", 36},
		{"sqrt(D)", 8},
		{"log2(D)", 6},
		{"2**log2(D) + pow(D, 2)", 64 + 4096},
		{"ceil(log2(S))", 7},
		// What a division by S becomes that is a multiplication and a shift.
		{"floor(4294967296*(pow2ceil(S) - S)/S) + 1", 1202590843},
		{"-B + H", 1},
		{"S > D ? H : B", 3},
		{"S == 100 and not (D != 64) ? 1 : 0", 1},
		{"S < D || B >= 2 ? 7 : 8", 7},
		// An int would have wrapped around on the way.
		{"min(9000000000000000000*S*S*S, 5)", 5},
		{"1000000000000*1000000000000*0 + S", 100},
		{"(B + H)*(S - D)/B", 90},
	} {
		t.Run(tt.text, func(t *testing.T) {
			// As a double the value need not be whole at the manifest's shapes.
			m, err := Parse("kernel.yaml", []byte(strings.NewReplacer("dtype: i32", "dtype: f64", "value: S}", "value: '"+tt.text+"'}").Replace(goodCPU)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Arguments[3].Value.eval(env)
			if err != nil || got != float64(tt.want) {
				t.Errorf("%s = %v (%v), want %d", tt.text, got, err, tt.want)
			}
		})
	}
}

func TestEvalRefuses(t *testing.T) {
	good := Env{"B": 1, "H": 1, "S": 32, "D": 64}
	for _, tt := range []struct {
		name, text string
		env        Env
		want       string
	}{
		{"no value", "S", Env{"B": 1}, `"S" has no value for S (give every dim of the manifest one)`},
		{"not whole", "S/32", Env{"S": 33}, `"S/32" is not a whole number but 1.03125 (use ceildiv, ceil or floor)`},
		{"negative", "S - 32", Env{"S": 31}, `"S - 32" is -1 (make it 0 or more)`},
		{"by zero", "D/S", Env{"S": 0, "D": 64}, `"D/S" divides by zero (use max(1, …) where a divisor can be 0)`},
		{"rest by zero", "D % S", Env{"S": 0, "D": 64}, `"D % S" divides by zero (use max(1, …) where a divisor can be 0)`},
		{"a power without a value", "S**(0-1)", Env{"S": 0, "D": 64}, `"S**(0-1)" is a power without a value (raise a positive number, e.g. 2**log2(N))`},
		{"hidden division by zero", "min(D/S, 5)", Env{"S": 0, "D": 64}, `"min(D/S, 5)" divides by zero (use max(1, …) where a divisor can be 0)`},
		{"too large", "S*S*S*S", Env{"S": math.MaxInt32}, `"S*S*S*S" is 2.1267647892944573e+37 (keep it within ±2^53)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse("kernel.yaml", []byte(strings.NewReplacer("dtype: i32", "dtype: f64", "value: S}", "value: '"+tt.text+"'}", "secret: {S: 1..160}", "").Replace(goodCPU)))
			if err != nil {
				t.Fatal(err)
			}
			e := m.Arguments[3].Value
			if _, err := e.eval(good); err != nil {
				t.Errorf("%s with good values: %v", tt.text, err)
			}
			_, err = e.within(tt.env, 0, maxWhole)
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := new(Expr).eval(nil); err == nil {
		t.Error("an expression that was never read has a value")
	}
}

func TestExprBare(t *testing.T) {
	for text, want := range map[string]bool{"S": true, "S*1": false, "64": false, "S+D": false} {
		if _, got := exprOf(t, text).bare(); got != want {
			t.Errorf("%q is bare: %v, want %v", text, got, want)
		}
	}
}

func TestEvalConcurrently(t *testing.T) {
	e := exprOf(t, "ceildiv(S, 64)*H")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for s := range 200 {
				got, err := e.within(Env{"S": s + 1, "H": i}, 0, maxWhole)
				if want := int64((s+64)/64) * int64(i); err != nil || got != want {
					t.Errorf("S=%d H=%d: %d (%v), want %d", s+1, i, got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}
