package match_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/core/match"
)

// A pod requires the label disk=ssd, and either zone a or b or the node named lab. A selector is
// compiled once. Those with the same content have one key: what matches one matches the others.
func Example() {
	expression := func(key string, op v1.NodeSelectorOperator, values ...string) []v1.NodeSelectorRequirement {
		return []v1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}}
	}
	required := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
		{MatchExpressions: expression("zone", v1.NodeSelectorOpIn, "a", "b")},
		{MatchFields: expression("metadata.name", v1.NodeSelectorOpIn, "lab")},
	}}
	ssd := map[string]string{"disk": "ssd"}
	s := match.NewNodeSelector(ssd, required)
	for _, node := range []match.Subject{
		{Name: "n1", Labels: map[string]string{"disk": "ssd", "zone": "a"}},
		{Name: "n2", Labels: map[string]string{"disk": "ssd", "zone": "c"}},
		{Name: "n3", Labels: map[string]string{"disk": "hdd", "zone": "b"}},
		{Name: "lab", Labels: map[string]string{"disk": "ssd"}},
	} {
		fmt.Println(node.Name, node.Labels, s.Matches(node))
	}
	fmt.Println("the same again has the same key:", match.NewNodeSelector(ssd, required.DeepCopy()).Key == s.Key)
	fmt.Println("without terms it has another:", match.NewNodeSelector(ssd, nil).Key != s.Key)

	// Output:
	// n1 disk=ssd,zone=a true
	// n2 disk=ssd,zone=c false
	// n3 disk=hdd,zone=b false
	// lab disk=ssd true
	// the same again has the same key: true
	// without terms it has another: true
}
