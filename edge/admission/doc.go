// Package admission does with a pod that is about to be made what the admission
// plugins of an API server do that are on by default and matter to scheduling. A
// RuntimeClass adds its overhead, node selector and tolerations. A LimitRange adds
// default requests and limits, and refuses pods outside its bounds. A ResourceQuota
// refuses pods beyond what its namespace may have. A claim without a class gets the
// default one. Pods that exist have passed admission: callers leave them out.
package admission
