package nominations_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/nominations"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// renominated also says which nodes changed, since the last revision.
type renominated struct {
	nominated
	now     uint64
	changed []string // since the revision before now
}

func (n renominated) Renominated(since uint64) ([]string, uint64, bool) {
	return n.changed, n.now, since+1 == n.now
}

// Rows lists, after each change of nominations, who is nominated where. Against a pod count those
// of at least its priority, and never the pod itself.
func TestRowsFollowNominations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tb, rows := table.New(), nominations.Rows{}
		for i := range 4 {
			tb.SetNode(&object.Node{Name: fmt.Sprint("n", i)})
		}
		var pods []*object.Pod
		for i := range 6 {
			pods = append(pods, podOf(fmt.Sprint("p", i), int32(rapid.IntRange(0, 2).Draw(t, "priority"))))
		}
		n := renominated{nominated: nominated{}, now: 1}
		of := map[types.UID]string{} // the node of each nominated pod
		t.Repeat(map[string]func(*rapid.T){
			"nominate": func(t *rapid.T) {
				p := rapid.SampledFrom(pods).Draw(t, "pod")
				was, node := of[p.UID], rapid.SampledFrom([]string{"", "n0", "n1", "n2", "n3"}).Draw(t, "node")
				n.now, n.changed = n.now+1, nil
				if was != "" {
					n.nominated[was] = slices.DeleteFunc(slices.Clone(n.nominated[was]), func(q *object.Pod) bool { return q == p })
					n.changed = append(n.changed, was)
				}
				if of[p.UID] = node; node != "" {
					n.nominated[node] = append(slices.Clone(n.nominated[node]), p)
					n.changed = append(n.changed, node)
				}
				rows.Follow(tb, n)
			},
			"": func(t *rapid.T) {
				for i := range 4 {
					name := fmt.Sprint("n", i)
					r, _ := tb.Find(name)
					on := rows.On(r)
					if (on == nil) != (len(n.nominated[name]) == 0) || on != nil && (on.Row != r || !slices.Equal(on.Pods, n.nominated[name])) {
						t.Fatalf("%s has %+v, want %v", name, on, n.nominated[name])
					}
					for _, p := range pods {
						own := table.Row(-1)
						if node := of[p.UID]; node != "" {
							own, _ = tb.Find(node)
						}
						want := slices.DeleteFunc(slices.Clone(n.nominated[name]), func(q *object.Pod) bool { return q == p || q.Priority < p.Priority })
						if on != nil && !slices.Equal(on.Against(p, own), want) {
							t.Fatalf("against %s on %s count %v, want %v", p.Name, name, on.Against(p, own), want)
						}
					}
				}
			},
		})
	})
}
