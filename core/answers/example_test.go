package answers_test

import (
	"fmt"

	"github.com/berth-scheduler/berth/core/answers"
	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/table"
)

// The partition of the package's comment: a filter that rejects tainted nodes, which a
// label stands for here. Node 4 loses its taint.
func Example() {
	nodes := table.New()
	for i, taints := range []string{"", "a", "", "ab", "b"} {
		nodes.SetNode(&object.Node{Name: fmt.Sprint("n", i), Labels: map[string]string{"taints": taints}})
	}
	asked := 0
	tainted := &framework.Plugin{Name: "Tainted", FilterPlugin: framework.FilterPlugin{
		Filter: func(in *framework.Input, rows []table.Row, out []framework.Verdict) {
			asked += len(rows)
			for i, r := range rows {
				out[i] = map[string]framework.Verdict{"a": 1, "ab": 1, "b": 2}[in.Table.Node(r).Labels["taints"]]
			}
		},
	}}

	var store answers.Store
	in := &framework.Input{Table: nodes, Pod: &object.Pod{Name: "p"}}
	show := func() {
		asked = 0
		p := store.Filter(tainted, in)
		for _, set := range p.Sets {
			fmt.Print("verdict ", set.Answer, ": rows ", set.Rows.Append(nil), "; ")
		}
		left := table.RowSet{0b11111}
		p.Reject(left)
		fmt.Println("left", left.Append(nil), "after", asked, "questions")
	}
	show()
	nodes.SetNode(&object.Node{Name: "n4"})
	show()

	// Output:
	// verdict 1: rows [1 3]; verdict 2: rows [4]; left [0 2] after 5 questions
	// verdict 1: rows [1 3]; verdict 2: rows []; left [0 2 4] after 1 questions
}
