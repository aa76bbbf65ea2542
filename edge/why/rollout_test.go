package why

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/manifest"
)

// The patch of a template is followed by what brings it to the pod, where the controller
// does not.
func TestCommandsRollOut(t *testing.T) {
	const (
		patch     = `{"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}}}`
		inCronJob = `{"spec":{"jobTemplate":` + patch + `}}`
		spec      = "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '9'}}}]}"
		template  = "selector: {matchLabels: {a: w}}, template: {metadata: {labels: {a: w}}, " + spec + "}"
		job       = `kubectl get job j -n default -o json |
  kubectl patch --local -f - -o json -p '` + patch + `' |
  kubectl patch --local -f - --type=merge -o json -p '{"spec":{"selector":null,"template":{"metadata":{"labels":{"controller-uid":null,"batch.kubernetes.io/controller-uid":null}}}}}' |
  kubectl replace --force -f -`
	)
	for name, c := range map[string]struct{ object, owner, pod, want string }{
		"a Deployment rolls out":        {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {" + template + "}", "apps/v1 ReplicaSet w-h", "w-h-1", "kubectl patch deployment w -n default -p '" + patch + "'"},
		"a paused Deployment":           {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w}\nspec: {paused: true, " + template + "}", "apps/v1 ReplicaSet w-h", "w-h-1", "kubectl patch deployment w -n default -p '" + patch + "'\nkubectl rollout resume deployment w -n default"},
		"a bare ReplicaSet":             {"", "apps/v1 ReplicaSet r", "r-1", "kubectl patch replicaset r -n default -p '" + patch + "'\nkubectl delete pod r-1 -n default"},
		"a ReplicaSet of another":       {"apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: r, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: Rollout, name: o, uid: u, controller: true}]}\nspec: {" + template + "}", "apps/v1 ReplicaSet r", "r-1", "# change it in ReplicaSet r, which makes this pod"},
		"a ReplicationController":       {"", "v1 ReplicationController r", "r-1", "kubectl patch replicationcontroller r -n default -p '" + patch + "'\nkubectl delete pod r-1 -n default"},
		"a StatefulSet":                 {"", "apps/v1 StatefulSet s", "s-0", "kubectl patch statefulset s -n default -p '" + patch + "'\nkubectl delete pod s-0 -n default"},
		"a StatefulSet's old partition": {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s}\nspec: {updateStrategy: {rollingUpdate: {partition: 2}}, " + template + "}", "apps/v1 StatefulSet s", "s-1", "kubectl patch statefulset s -n default -p '" + patch + "'\nkubectl patch statefulset s -n default -p '{\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"partition\":1}}}}'\nkubectl delete pod s-1 -n default"},
		"a DaemonSet rolls out":         {"", "apps/v1 DaemonSet d", "d-1", "kubectl patch daemonset d -n default -p '" + patch + "'"},
		"a DaemonSet on deletion":       {"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {updateStrategy: {type: OnDelete}, " + template + "}", "apps/v1 DaemonSet d", "d-1", "kubectl patch daemonset d -n default -p '" + patch + "'\nkubectl delete pod d-1 -n default"},
		"a Job":                         {"", "batch/v1 Job j", "j-1", job},
		"a CronJob's Job":               {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: j}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {template: {" + spec + "}}}}", "batch/v1 Job j-7", "j-7-1", "kubectl patch cronjob j -n default -p '" + inCronJob + "'\nkubectl delete job j-7 -n default --ignore-not-found\nkubectl create job j-7 -n default --from=cronjob/j"},
	} {
		t.Run(name, func(t *testing.T) {
			set := manifest.NewSet()
			set.KeepWritten = true
			owner := strings.Fields(c.owner)
			text := "apiVersion: v1\nkind: Pod\nmetadata: {name: " + c.pod + ", namespace: default, labels: {pod-template-hash: h}, ownerReferences: [{apiVersion: " +
				owner[0] + ", kind: " + owner[1] + ", name: " + owner[2] + ", uid: u, controller: true}]}\n" + spec + "\n---\n" + c.object
			if err := set.Files([]string{"-"}, strings.NewReader(text), 1); err != nil {
				t.Fatal(err)
			}
			var pod *v1.Pod
			for _, p := range set.Pods {
				if p.Name == c.pod {
					pod = p
				}
			}
			f := &facts{api: pod, cluster: &Cluster{Set: set}}
			of := &fix.Fix{Changes: []fix.Change{{Kind: "Pod", Namespace: "default", Name: c.pod, Patch: []fix.Op{{Op: "replace", Path: "/spec/containers/0/resources/requests/cpu", Value: "1"}}}}}
			if got := strings.Join(f.commands(of), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
