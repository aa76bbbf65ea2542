package workload

import "regexp"

// nameForm is how controllers name pods: the end of the name behind their own.
type nameForm struct {
	name  *regexp.Regexp
	kinds []string
}

// random matches a character of the ends that the API server and Deployments make up.
const random = "[bcdfghjklmnpqrstvwxz2456789]"

// nameForms are tried in this order.
var nameForms = []nameForm{
	{regexp.MustCompile(`^(.+)-` + random + `{5}$`), []string{"ReplicaSet", "DaemonSet", "Job", "ReplicationController"}},
	{regexp.MustCompile(`^(.+)-` + random + `{7,10}-` + random + `{5}$`), []string{"Deployment"}},
	{regexp.MustCompile(`^(.+)-\d+-` + random + `{5}$`), []string{"Job", "CronJob"}}, // an index, a time
	{numbered, []string{"StatefulSet"}},
}

var numbered = regexp.MustCompile(`^(.+)-\d+$`)

// Named is a workload that may have made a pod.
type Named struct{ Kind, Name string }

// ByName returns the workloads that may have made a pod of the name, the likeliest first. It
// returns none for a name that controllers do not make. Kinds that Kubernetes does not know name
// pods in the same ways, or in others.
func ByName(pod string) (all []Named) {
	for _, form := range nameForms {
		if found := form.name.FindStringSubmatch(pod); found != nil {
			for _, kind := range form.kinds {
				all = append(all, Named{kind, found[1]})
			}
		}
	}
	return all
}

// Family returns what the names of a pod and of those that were made like it have in common, with
// a * for the rest. A name that no controller makes is a family of its own.
func Family(pod string) string {
	shortest := pod
	for _, by := range ByName(pod) {
		if len(by.Name) < len(shortest) {
			shortest = by.Name
		}
	}
	if shortest == pod {
		return pod
	}
	return numbered.ReplaceAllString(shortest, "$1") + "-*"
}
