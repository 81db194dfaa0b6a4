package result

import (
	"reflect"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/schema"
)

// Reasons returns every reason that a result may have.
func Reasons() []gates.Reason {
	return []gates.Reason{
		gates.ReasonBuild, gates.ReasonResources, gates.ReasonCorrectness, gates.ReasonPrecision, gates.ReasonTooSlow, gates.ReasonRegression,
		gates.ReasonInconclusive, gates.ReasonSuspicious, gates.ReasonProfile, gates.ReasonRunner, gates.ReasonSetup, ReasonProbe, ReasonBudget,
	}
}

// Enums returns the values of the types of a result that have a fixed set of them, for schemas.
func Enums() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[gates.Outcome](): texts([]gates.Outcome{gates.Pass, gates.Defer, gates.Error}),
		reflect.TypeFor[gates.Reason]():  texts(Reasons()),
		reflect.TypeFor[gates.Gate]():    texts(gates.Names()),
		reflect.TypeFor[gates.Role]():    texts([]gates.Role{gates.RoleTarget, gates.RoleGuard, gates.RoleInfo}),
		reflect.TypeFor[gates.Status]():  texts([]gates.Status{gates.Passed, gates.Failed, gates.Open, gates.Informs, gates.NotRun, gates.Missing}),
		reflect.TypeFor[Kind]():          texts(Kinds()),
		reflect.TypeFor[Intent]():        texts(Intents()),
	}
}

func texts[T ~string](all []T) []string {
	var out []string
	for _, one := range all {
		out = append(out, string(one))
	}
	return out
}

// JSONSchema returns the schema of what encoding/json writes of a value of type T, with the enums of
// results. It is a complete document.
func JSONSchema[T any]() map[string]any {
	w := schema.Writer{Enums: Enums()}
	top := w.Of(reflect.TypeFor[T]())
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["$defs"] = w.Definitions
	return top
}
