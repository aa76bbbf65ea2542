package recording

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// What a record keeps of an object decodes to what the object itself does: whatever
// fields it has set.
func TestKeepsAllThatIsDecoded(t *testing.T) {
	for k := kindPod; k.known(); k++ {
		for seed := range int64(60) {
			o := k.empty()
			fill(seed).Fill(o)
			body, err := o.Marshal() // as it comes from the API
			if err != nil {
				t.Fatal(err)
			}
			o = k.empty()
			if err := o.Unmarshal(body); err != nil {
				t.Fatal(err)
			}
			whole, err := setOf(o)
			if err != nil {
				continue // nobody can make sense of it
			}
			text := NewObjects(nil).write(o)
			kept, _, err := set(kind(k), text)
			if err != nil {
				t.Fatalf("%T, seed %d: %v", o, seed, err)
			}
			forget(whole)
			forget(kept)
			if !reflect.DeepEqual(whole, kept) {
				t.Fatalf("%T, seed %d: decoded as\n%s\nafter the record as\n%s", o, seed, show(whole), show(kept))
			}
		}
	}
}

// forget clears what a record changes on purpose.
func forget(e machine.Event) {
	switch e := e.(type) {
	case machine.PodSet:
		e.Pod.Recorded = ""
	case machine.NodeSet:
		e.Node.Recorded = ""
		e.Node.Annotations = nil // one digest stands for all
	case machine.NamespaceSet:
		e.Namespace.Recorded = ""
	case machine.BudgetSet:
		e.Budget.Recorded = ""
	case machine.SelectorOwnerSet:
		e.Owner.Recorded = ""
	case machine.ObjectSet:
		e.Object.Head().Recorded = ""
		switch o := e.Object.(type) { // these are the API object
		case *object.ResourceClaim:
			bare(o.API)
		case *object.ResourceSlice:
			bare(o.API)
		case *object.DeviceClass:
			bare(o.API)
		}
	}
}

func bare(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetFinalizers(nil)
	o.SetAnnotations(keepAnnotations(o.GetAnnotations()))
}

func fill(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.5).NumElements(0, 2).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) { q.Set(int64(c.Intn(1000))) },
		func(m *metav1.ManagedFieldsEntry, c randfill.Continue) {},
		func(s *v1.VolumeSource, c randfill.Continue) { one(reflect.ValueOf(s).Elem(), c) },
		func(s *v1.PersistentVolumeSource, c randfill.Continue) { one(reflect.ValueOf(s).Elem(), c) },
		func(r *runtime.RawExtension, c randfill.Continue) {},
		func(p *v1.PodPhase, c randfill.Continue) { *p = v1.PodRunning },
		func(m *json.RawMessage, c randfill.Continue) { *m = strconv.AppendInt(nil, int64(c.Intn(3)), 10) },
		func(m *map[string]string, c randfill.Continue) {
			*m = map[string]string{}
			for _, key := range append([]string{"a", "b"}, annotations...) {
				if c.Bool() {
					(*m)[key] = string(rune('a' + c.Intn(26)))
				}
			}
		},
	)
}

// show prints what is behind the pointers, too.
func show(e machine.Event) string {
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Sprintf("%+v", e)
	}
	return string(text)
}

// one sets one of the pointers: the API server takes no volume of two kinds.
func one(s reflect.Value, c randfill.Continue) {
	f := s.Field(c.Intn(s.NumField()))
	f.Set(reflect.New(f.Type().Elem()))
	c.Fill(f.Interface())
}
