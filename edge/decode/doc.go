// Package decode turns API objects into the core's own. What the API server
// accepts always decodes: a part that makes no sense (an affinity term that
// does not parse, say) becomes one that matches nothing, as in kube-scheduler.
// Objects from files first get the defaults that the API server would give
// them, and are checked; that, too, is here.
package decode
