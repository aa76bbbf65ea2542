package fix

// Fix is changes after which the pod is placed at its next decision.
type Fix struct {
	Summary string   `json:"summary"`
	Changes []Change `json:"changes"`
	Then    Then     `json:"then"`
	// First are pods that come before the pod in the queue and take what the changes free.
	First []string `json:"first,omitempty"`
	// More are the changes with which the pod is placed after those. Without any, it waits on.
	More []Change `json:"more,omitempty"`
	// Commands are what to type for it, line by line.
	Commands []string `json:"commands,omitempty"`
	// UndoesRollout says that the pod's Deployment gets its last template back: the changes are
	// those that the pod needs of it.
	UndoesRollout bool `json:"undoesRollout,omitempty"`

	stage stage
	// edits are what the changes were made of.
	edits []edit
}

// Change is a change of one object.
type Change struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Patch      []Op   `json:"patch,omitempty"` // JSON Patch (RFC 6902)
	Delete     bool   `json:"delete,omitempty"`
	Create     any    `json:"create,omitempty"`
}

// Op is an operation of JSON Patch.
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"` // of add and replace
}

// Then is the result of the next decision.
type Then struct {
	Node string `json:"node"`
	// Evicts are the pods that it preempts.
	Evicts []string `json:"evicts"`
}
