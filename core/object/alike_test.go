package object

import (
	"reflect"
	"testing"
	"time"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/resource"
)

// idle are the fields that say nothing to others once a pod is placed: what
// the pod itself asks of nodes, and how it is getting on.
var idle = []string{
	"SchedulerName", "NodeName", "NominatedNode", "NeverPreempts", "Created", "Version", "Generation", "Gates",
	"RequiredNodes", "PreferredNodes", "Tolerations", "Spread", "Claiming", "Controller", "Images", "Features", "Extended",
	"Scheduled", "Disrupted", "API", "Recorded", "Limits", "SchedulingGroup", "Running", "Failed",
}

// Every field of a pod counts for Alike, or is known not to.
func TestAlikeKnowsEveryField(t *testing.T) {
	isIdle := map[string]bool{}
	for _, name := range idle {
		isIdle[name] = true
	}
	fields := reflect.TypeFor[Pod]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		p, q := &Pod{}, &Pod{}
		if !change(reflect.ValueOf(q).Elem().Field(i)) {
			t.Fatalf("Pod.%s: no other value is known", name)
		}
		if alike := p.Alike(q); alike != isIdle[name] {
			t.Errorf("Pod.%s: alike is %v where it differs: say in Alike, or here, whether it counts once a pod is placed", name, alike)
		}
	}
	if p := (&Pod{UID: "a", Labels: map[string]string{"a": "b"}}); !p.Alike(&Pod{UID: "a", Labels: map[string]string{"a": "b"}, NodeName: "n"}) {
		t.Error("a bound pod is not like the assumed one")
	}
}

// change gives the field another value than its zero.
func change(f reflect.Value) bool {
	switch v := f.Addr().Interface().(type) {
	case *map[string]string:
		*v = map[string]string{"a": "b"}
	case *time.Time:
		*v = time.Unix(1, 0)
	case *resource.Demand:
		v.Usage.MilliCPU = 1
	case **match.PodAffinity:
		*v = &match.PodAffinity{Key: "a"}
	default:
		switch f.Kind() {
		case reflect.String:
			f.SetString("a")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			f.SetInt(1)
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case reflect.Struct:
			return change(f.Field(0))
		default:
			return false
		}
	}
	return true
}
