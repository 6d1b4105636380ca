package store_test

import (
	"go/ast"
	"go/token"
	"go/types"
)

// Where the values of variables, fields, parameters and results come from, for
// TestSQLIsMadeOfConstants.

// needObject makes sure of whatever is ever assigned to a variable.
func (c *code) needObject(o types.Object, used ast.Node) {
	v, ok := o.(*types.Var)
	if !ok {
		c.problem(used, "this is no variable")
		return
	}
	v = v.Origin()
	if c.done[v] {
		return
	}
	c.done[v] = true
	if v.Pkg() == nil || !c.ours(v) {
		c.problem(used, "the variable belongs to somebody else")
		return
	}
	if (v.IsField() || v.Parent() == v.Pkg().Scope()) && v.Exported() {
		c.problem(used, "others can set this")
	}
	for _, file := range c.files {
		ast.Inspect(file, func(n ast.Node) bool { c.needSet(v, n); return true })
	}
}

// ours reports whether the source of v is here.
func (c *code) ours(v types.Object) bool {
	for _, f := range c.files {
		if f.FileStart <= v.Pos() && v.Pos() < f.FileEnd {
			return true
		}
	}
	return false
}

// needSet makes sure of what n gives to v.
func (c *code) needSet(v *types.Var, n ast.Node) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if c.isVar(name, v) && len(n.Values) > 0 {
				c.needAssigned(n.Values, i)
			}
		}
	case *ast.AssignStmt:
		for i, lhs := range n.Lhs {
			if c.isVar(elementOf(lhs), v) {
				c.needAssigned(n.Rhs, i)
			}
		}
	case *ast.RangeStmt:
		for _, x := range []ast.Expr{n.Key, n.Value} {
			if x != nil && c.isVar(x, v) {
				c.need(n.X)
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND && c.isVar(elementOf(n.X), v) {
			c.problem(n, "its address is taken, so it could be set anywhere")
		}
	case *ast.CompositeLit:
		c.needLiteral(v, n)
	case *ast.FuncDecl:
		c.needParam(v, n)
	case *ast.FuncLit:
		if paramIndex(c, n.Type, v) >= 0 {
			c.problem(n, "this function without a name gets SQL")
		}
	}
}

// isVar reports whether e names v.
func (c *code) isVar(e ast.Expr, v *types.Var) bool {
	e = ast.Unparen(e)
	if sel, ok := e.(*ast.SelectorExpr); ok {
		e = sel.Sel
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	o, ok := c.info.ObjectOf(id).(*types.Var)
	return ok && o.Origin() == v
}

// elementOf is x when e is a part of x: whoever sets the part, sets x.
func elementOf(e ast.Expr) ast.Expr {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return x
		}
	}
}

// needAssigned makes sure of the value in place i of an assignment.
func (c *code) needAssigned(values []ast.Expr, i int) {
	if i < len(values) && len(values) > 1 || i == 0 && len(values) == 1 && !c.isTuple(values[0]) {
		c.need(values[i])
		return
	}
	if call, ok := ast.Unparen(values[0]).(*ast.CallExpr); ok {
		if _, fn := c.callee(call); fn != nil {
			c.needResult(result{fn, i}, call)
			return
		}
	}
	c.problem(values[0], "nobody knows where this comes from")
}

func (c *code) isTuple(e ast.Expr) bool { _, ok := c.info.TypeOf(e).(*types.Tuple); return ok }

// needLiteral makes sure of the field v in a literal of its struct.
func (c *code) needLiteral(v *types.Var, lit *ast.CompositeLit) {
	s, ok := c.info.TypeOf(lit).Underlying().(*types.Struct)
	if !ok || !v.IsField() {
		return
	}
	for i, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			if c.isVar(kv.Key, v) {
				c.need(kv.Value)
			}
		} else if s.Field(i).Origin() == v {
			c.need(elt)
		}
	}
}

// needParam makes sure of every argument that is given for the parameter v.
func (c *code) needParam(v *types.Var, decl *ast.FuncDecl) {
	at := paramIndex(c, decl.Type, v)
	if at < 0 {
		if decl.Recv != nil && len(decl.Recv.List[0].Names) > 0 && c.info.Defs[decl.Recv.List[0].Names[0]] == v {
			c.problem(decl, "the receiver is SQL")
		}
		return
	}
	fn := c.info.Defs[decl.Name].(*types.Func)
	if fn.Exported() && (decl.Recv == nil || exportedType(fn)) {
		c.problem(decl, "others can call this with any SQL")
	}
	for _, file := range c.files {
		called := map[*ast.Ident]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if id, callee := c.callee(n); callee == fn || mayBe(callee, fn) {
					called[id] = true
					c.needArgument(n, fn, at)
				}
			case *ast.Ident:
				if used, ok := c.info.Uses[n].(*types.Func); ok && used.Origin() == fn && !called[n] {
					c.problem(n, "a function that gets SQL is passed on")
				}
			}
			return true
		})
	}
}

// mayBe reports whether called is the method of an interface that fn may stand
// for.
func mayBe(called, fn *types.Func) bool {
	return called != nil && called.Name() == fn.Name() && called.Signature().Recv() != nil && types.IsInterface(called.Signature().Recv().Type())
}

func (c *code) needArgument(call *ast.CallExpr, fn *types.Func, at int) {
	last := fn.Signature().Params().Len() - 1
	switch {
	case len(call.Args) <= last && c.isTuple(call.Args[0]):
		c.problem(call, "nobody knows where this comes from")
	case fn.Signature().Variadic() && at == last:
		for _, arg := range call.Args[at:] {
			c.need(arg)
		}
	default:
		c.need(call.Args[at])
	}
}

func exportedType(fn *types.Func) bool {
	t := fn.Signature().Recv().Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := t.(*types.Named)
	return !ok || named.Obj().Exported()
}

// paramIndex is where v is among the parameters, -1 if it is none of them.
func paramIndex(c *code, f *ast.FuncType, v *types.Var) int {
	i := 0
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			if c.info.Defs[name] == v {
				return i
			}
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
	}
	return -1
}

// needResult makes sure of what a function of ours returns in one place.
func (c *code) needResult(r result, used ast.Node) {
	if c.done[r] {
		return
	}
	found := false
	for _, file := range c.files {
		for _, d := range file.Decls {
			if decl, ok := d.(*ast.FuncDecl); ok && c.info.Defs[decl.Name] == r.of && decl.Body != nil {
				found = true
				c.done[r] = true
				c.needReturns(r, decl)
			}
		}
	}
	if !found {
		c.problem(used, "what "+r.of.FullName()+" returns could be anything")
	}
}

func (c *code) needReturns(r result, decl *ast.FuncDecl) {
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) == 0 {
				c.needObject(r.of.Signature().Results().At(r.at), n)
			} else {
				c.needAssigned(n.Results, r.at)
			}
		}
		return true
	})
}
