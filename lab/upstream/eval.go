package upstream

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// text returns an expression as text: the value of a constant, the last part of another
// name, and the parts of a literal. It follows names through packages.
func (s *Sources) text(f *file, e ast.Expr) string { return s.follow(f, e, 0) }

// maxDepth bounds the constants that stand for one another. Beyond it an expression is
// returned as it is written.
const maxDepth = 12

func (s *Sources) follow(f *file, e ast.Expr, depth int) string {
	if depth > maxDepth {
		return types.ExprString(e)
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return unquote(e.Value)
		}
		return e.Value
	case *ast.Ident:
		if v, ok := f.pkg.consts[e.Name]; ok && e.Name != "iota" {
			return s.follow(v.in, v.expr, depth+1)
		}
		return e.Name
	case *ast.SelectorExpr:
		return s.selected(f, e, depth)
	case *ast.ParenExpr:
		return s.follow(f, e.X, depth)
	case *ast.StarExpr:
		return s.follow(f, e.X, depth)
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			return s.follow(f, e.X, depth)
		}
		return e.Op.String() + s.follow(f, e.X, depth)
	case *ast.BinaryExpr:
		return s.binary(f, e, depth)
	case *ast.CallExpr:
		return s.called(f, e, depth)
	case *ast.CompositeLit:
		return s.literal(f, e, depth)
	}
	return types.ExprString(e)
}

// selected is what a name of a package, or a field, says.
func (s *Sources) selected(f *file, e *ast.SelectorExpr, depth int) string {
	if x, ok := e.X.(*ast.Ident); ok && f.imports[x.Name] != "" {
		if p := s.load(f.imports[x.Name]); p != nil {
			if v, ok := p.consts[e.Sel.Name]; ok {
				return s.follow(v.in, v.expr, depth+1)
			}
		}
	}
	return e.Sel.Name
}

// binary is a sum of strings, or the operands with the operator.
func (s *Sources) binary(f *file, e *ast.BinaryExpr, depth int) string {
	x, y := s.follow(f, e.X, depth), s.follow(f, e.Y, depth)
	if e.Op == token.ADD && (isText(e.X) || isText(e.Y)) {
		return x + y
	}
	a, b := constant.MakeFromLiteral(x, token.INT, 0), constant.MakeFromLiteral(y, token.INT, 0)
	if e.Op == token.MUL && a.Kind() == constant.Int && b.Kind() == constant.Int {
		return constant.BinaryOp(a, e.Op, b).ExactString()
	}
	return x + e.Op.String() + y
}

func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return isText(e.X) || isText(e.Y)
	}
	return false
}

// called is the argument of a conversion and of ptr.To, else the name of the function
// with its arguments.
func (s *Sources) called(f *file, e *ast.CallExpr, depth int) string {
	var args []string
	for _, a := range e.Args {
		args = append(args, s.follow(f, a, depth))
	}
	name := types.ExprString(e.Fun)
	name = name[strings.LastIndex(name, ".")+1:]
	if at, is := e.Fun.(*ast.IndexExpr); is { // ptr.To[int32]
		name = types.ExprString(at.X)
		name = name[strings.LastIndex(name, ".")+1:]
	}
	if len(args) == 1 {
		return args[0]
	}
	return name + "(" + strings.Join(args, ", ") + ")"
}

// literal is a composite literal without its type.
func (s *Sources) literal(f *file, e *ast.CompositeLit, depth int) string {
	var parts []string
	for _, elt := range e.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			key := s.follow(f, kv.Key, depth)
			if id, ok := kv.Key.(*ast.Ident); ok {
				key = id.Name
			}
			parts = append(parts, key+": "+s.follow(f, kv.Value, depth))
			continue
		}
		parts = append(parts, s.follow(f, elt, depth))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// stringOf returns the value of a literal of a string, or of a sum of them; "" for all else.
func (s *Sources) stringOf(f *file, e ast.Expr) string {
	if isText(e) {
		return s.text(f, e)
	}
	return ""
}
