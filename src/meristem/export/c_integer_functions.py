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
    "requantized_wide": """
static int requantized_wide(int32_t sum, uint16_t factor, int shift, int low, int high)
{
    const int64_t v = (int64_t)sum * factor + ((int64_t)1 << (shift - 1)), q = v < 0 ? ~(~v >> shift) : v >> shift;

    return q < low ? low : q > high ? high : (int)q;
}
""",
    "interpolated": """
static VALUE interpolated(int at, const VALUE *curve)  /* on the lines between its points */
{
    const VALUE *point = curve + (at >> 7);
    const int32_t first = VALUE_AT(point), rise = VALUE_AT(point + 1) - first;

    return (VALUE)(first + shifted(rise * (at & 127) + 64, 7));
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

    for (o = 0; o < n_out; o++, w += n_in)
        y[o] = interpolated(requantized(sum(n_in, w, SUM_AT(b + o), x), FACTOR_AT(m + o), pre, shift, 0, last), curve);
}
""",
    "window_sum": """
static int32_t window_sum(int n, int height, int width, int rows, int columns, int row, int column,
                          const VALUE *w, const VALUE *z, const VALUE *x)  /* of w (x - z), where the kernel is on x */
{
    int32_t total = 0;
    int i, a, b;

    for (i = 0; i < n; i++, w += rows * columns, x += height * width)
        for (a = row < 0 ? -row : 0; a < rows && row + a < height; a++)
            for (b = column < 0 ? -column : 0; b < columns && column + b < width; b++)
                total += (int32_t)VALUE_AT(w + a * columns + b) * (x[(row + a) * width + column + b] - VALUE_AT(z + i));
    return total;
}
""",
    "conv": """
static void conv(int n_in, int n_out, int step, int height, int width, int rows, int columns, const VALUE *w, const VALUE *z,
                 const int32_t *b, const uint16_t *m, int shift, int last, const VALUE *curve, const int32_t *factor,
                 const VALUE *x, const VALUE *other, VALUE *y)  /* W * x + b + factor other, which may be y */
{
    int o, r, c;

    for (o = 0; o < n_out; o++, w += n_in * rows * columns, x += step * height * width, z += step)
        for (r = -(rows / 2); r < height - rows / 2; r++)
            for (c = -(columns / 2); c < width - columns / 2; c++) {
                int32_t total = SUM_AT(b + o) + window_sum(n_in, height, width, rows, columns, r, c, w, z, x);

                if (factor)
                    total += SUM_AT(factor + o) * *other++;
                if (curve)
                    *y++ = interpolated(requantized_wide(total, FACTOR_AT(m + o), shift, 0, last), curve);
                else
                    *y++ = (VALUE)requantized_wide(total, FACTOR_AT(m + o), shift, -MOST, MOST);
            }
}
""",
    "pool": """
static void pool(int n, int height, int width, int rows, int columns, const VALUE *x, VALUE *y)  /* means; y may be x */
{
    int i, r, c, k;

    for (i = 0; i < n; i++, x += height * width)
        for (r = 0; r + rows <= height; r += rows)
            for (c = 0; c + columns <= width; c += columns) {
                int32_t total = rows * columns / 2;

                for (k = 0; k < rows * columns; k++)
                    total += (int32_t)x[(r + k / columns) * width + c + k % columns] + MOST + 1;
                *y++ = (VALUE)(total / (rows * columns) - MOST - 1);
            }
}
""",
    "average": """
static void average(int n, int p, const int32_t *b, const uint16_t *m, int shift, const VALUE *x, VALUE *y)  /* y may be x */
{
    int i, k;

    for (i = 0; i < n; i++) {
        int32_t total = SUM_AT(b + i);

        for (k = 0; k < p; k++)
            total += *x++;
        y[i] = (VALUE)requantized_wide(total, FACTOR_AT(m + i), shift, -MOST, MOST);
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
