package tool

import (
	"fmt"
	"testing"
)

// The pods that are evicted for a gang are in no pod's decision, so the result lists them, as the
// table does.
func TestVictimsOfAGang(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default, labels: {%s}}\n" +
		"spec: {priority: %d, nodeName: %q, containers: [{name: c, image: i, resources: {requests: {cpu: 3}}}]}\n"
	const label = "scheduling.x-k8s.io/pod-group: gang"
	in := "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: gang, namespace: default}\nspec: {minMember: 2}\n"
	for i := range 2 {
		in += fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: 4, pods: 10}}\n", i) +
			fmt.Sprintf(pod, fmt.Sprint("old-", i), "", 0, fmt.Sprint("n", i)) + fmt.Sprintf(pod, fmt.Sprint("gang-", i), label, 9, "")
	}
	_, out, errs := berth(in, "simulate", "-f", "-", "--config", "testdata/gangs-config.yaml", "-o", "jsonpath={.evicted}")
	const want = `[{"for":"default/gang-0","node":"n0","pod":"default/old-0"},{"for":"default/gang-0","node":"n1","pod":"default/old-1"}]`
	if out != want {
		t.Errorf("evicted %s, want %s\n%s", out, want, errs)
	}
}
