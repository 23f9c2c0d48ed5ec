package vet

func f(n int) (s []int) {
	//maxlive:loop 5 because the caller says so
	for range n {
		s = append(s, 1) //maxlive:len 5 because of the loop
	}
	//maxlive:loop 5 because it is misplaced // want "there is no loop on the line"
	s = s[:0]
	/* want "is not a bound" */ //maxlive:loop five because of nothing
	for range n {
		s = nil
	}
	return s
}

//maxlive:recursion 5 because the caller says so
func g(n int) {
	g(n - 1) //maxlive:recursion 5 because it is misplaced // want "there is no function on the line"
}
