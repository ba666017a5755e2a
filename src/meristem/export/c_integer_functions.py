"""The C functions of a network in integers, and those that differ where x holds integers; see c_functions.py.

VALUE is int8_t or int16_t, MOST the largest of a value. Names that c_functions.py has, too, replace its functions.
"""

INTEGERS = {
    "shifted": """
static int32_t shifted(int32_t v, int bits)  /* v / 2^bits, rounded down */
{
    return v < 0 ? ~(~v >> bits) : v >> bits;
}
""",
    "requantized": """
static int requantized(int32_t sum, int32_t factor, int pre, int shift, int low, int high)
{
    const int32_t v = shifted(shifted(sum, pre) * factor + ((int32_t)1 << (shift - 1)), shift);

    return v < low ? low : v > high ? high : (int)v;
}
""",
    "rounded": """
static VALUE rounded(REAL v)
{
    return (VALUE)(v > MOST ? MOST : v < -MOST ? -MOST : v < 0 ? v - 0.5f : v + 0.5f);
}
""",
    "spread": """
static VALUE spread(int32_t v, int32_t low, int32_t width, uint32_t factor)  /* low … low + width as -MOST … MOST */
{
    const uint32_t most = (uint32_t)width, above = v < low ? 0 : (uint32_t)v - (uint32_t)low;

    return (VALUE)((int32_t)(((above < most ? above : most) * factor + 16384) >> 15) - MOST);
}
""",
    "sum": """
static int32_t sum(int n, const VALUE *w, int32_t start, const VALUE *x)
{
    int i;

    for (i = 0; i < n; i++)
        start += (int32_t)VALUE_AT(w + i) * x[i];
    return start;
}
""",
    "dense": """
static void dense(int n_in, int n_out, const VALUE *w, const int32_t *b, const uint16_t *m, int pre, int shift,
                  const VALUE *x, VALUE *y)  /* W x + b, limited: a rectifier's range begins at 0 */
{
    int o;

    for (o = 0; o < n_out; o++, w += n_in)
        y[o] = (VALUE)requantized(sum(n_in, w, SUM_AT(b + o), x), FACTOR_AT(m + o), pre, shift, -MOST, MOST);
}
""",
    "dense_curve": """
static void dense_curve(int n_in, int n_out, const VALUE *w, const int32_t *b, const uint16_t *m, int pre, int shift,
                        int last, const VALUE *curve, const VALUE *x, VALUE *y)  /* lines between points of a curve */
{
    int o;

    for (o = 0; o < n_out; o++, w += n_in) {
        const int at = requantized(sum(n_in, w, SUM_AT(b + o), x), FACTOR_AT(m + o), pre, shift, 0, last);
        const VALUE *point = curve + (at >> 7);
        const int32_t first = VALUE_AT(point), rise = VALUE_AT(point + 1) - first;

        y[o] = (VALUE)(first + shifted(rise * (at & 127) + 64, 7));
    }
}
""",
    "product": """
static void product(int n, const int16_t *zeros_a, const int16_t *zeros_b, const int32_t *b, const uint16_t *m,
                    int pre, int shift, const VALUE *x, const VALUE *z, VALUE *y)
{
    int i;

    for (i = 0; i < n; i++) {
        const int32_t factor = (int32_t)x[i] - SHORT_AT(zeros_a + i), other = (int32_t)z[i] - SHORT_AT(zeros_b + i);

        y[i] = (VALUE)requantized(factor * other + SUM_AT(b + i), FACTOR_AT(m + i), pre, shift, -MOST, MOST);
    }
}
""",
    "dense_real": """
static void dense_real(int n_in, int n_out, const VALUE *w, const int32_t *b, const REAL *scale, const VALUE *x, REAL *y)
{
    int o;

    for (o = 0; o < n_out; o++, w += n_in)
        y[o] = (REAL)sum(n_in, w, SUM_AT(b + o), x) * AT(scale + o);
}
""",
    "dense_sums": """
static void dense_sums(int n_in, int n_out, const VALUE *w, const int32_t *b, const uint16_t *m, int pre, int shift,
                       const VALUE *x, int32_t *y)  /* outputs, all in one unit */
{
    int o;

    for (o = 0; o < n_out; o++, w += n_in)
        y[o] = requantized(sum(n_in, w, SUM_AT(b + o), x), FACTOR_AT(m + o), pre, shift, -32767, 32767);
}
""",
    "copy": """
static void copy(int n, const VALUE *x, VALUE *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] = x[i];
}
""",
}
WHOLE = {  # where x holds integers
    "is_number": """
static int is_number(int32_t v)
{
    return v != INT32_MIN;
}
""",
}
