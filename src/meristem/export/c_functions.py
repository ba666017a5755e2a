"""The C functions that an exported network calls, each with the names of those that it calls itself.

REAL is float or double; AT(p) reads a constant, in flash on AVR. Sums start at the bias, which is the first row of a table with
a row for each input. No function keeps anything between calls, allocates anything, or has undefined behavior for any number,
NaN and infinities among them.
"""

import re

from meristem.export.c_integer_functions import INTEGERS, WHOLE
from meristem.layers.activation import ACTIVATIONS

FUNCTIONS = {  # in the order in which they stand in a file
    "is_number": """
static int is_number(REAL v)  /* neither NaN nor infinite */
{
    return v - v == 0;
}
""",
    "exponential": """
static REAL exponential(REAL z)  /* e^z, to 2e-7 of it */
{
    REAL r, y;
    int k;

    z = z > LOWEST ? (z < HIGHEST ? z : HIGHEST) : LOWEST;
    k = (int)(z * 1.44269504f + (z < 0 ? -0.5f : 0.5f));
    r = (z - k * 0.693359375f) + k * 2.12194440e-4f;  /* z - k log 2 */
    y = 1 + r * (1 + r * (0.5f + r * (0.166666667f + r * (0.0416666667f + r * (0.00833333333f + r * 0.00138888889f)))));
    for (; k > 0; k--)
        y *= 2;
    for (; k < 0; k++)
        y *= 0.5f;
    return y;
}
""",
    "log_1_plus": """
static REAL log_1_plus(REAL u)  /* log(1 + u) for u from 0 to 1 */
{
    const REAL s = u / (2 + u), q = s * s;

    return 2 * s * (1 + q * (0.333333333f + q * (0.2f + q * (0.142857143f + q * (0.111111111f + q * 0.0909090909f)))));
}
""",
    "sigmoid": """
static REAL sigmoid(REAL z)
{
    return 1 / (1 + exponential(-z));
}
""",
    "hyperbolic": """
static REAL hyperbolic(REAL z)  /* tanh */
{
    return 1 - 2 / (1 + exponential(2 * z));
}
""",
    "limited": """
static REAL limited(REAL z, REAL limit)  /* as it is up to the limit, and never beyond twice that */
{
    const REAL cut = z > limit ? limit : z < -limit ? -limit : z;

    return cut == z ? z : cut + limit * hyperbolic((z - cut) / limit);
}
""",
    "code": """
static int code(REAL v, int n)  /* a category: 0 … n - 1; -1: missing (NaN, infinite or -1); -2: anything else, unseen */
{
    if (!is_number(v) || v == -1)
        return -1;
    if (!(v >= 0 && v < n))
        return -2;
    return (int)v == v ? (int)v : -2;
}
""",
    "load": """
static void load(int n, int p, const WEIGHT *b, REAL *y)  /* y[i][…] = b[i] at p positions */
{
    int i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < p; k++)
            *y++ = AT(b + i);
}
""",
    "clear": """
static void clear(int n, REAL *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] = 0;
}
""",
    "copy": """
static void copy(int n, const REAL *x, REAL *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] = x[i];
}
""",
    "pick": """
static void pick(int n, int p, const INDEX *rows, const REAL *x, REAL *y)  /* some units, at p positions each */
{
    int i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < p; k++)
            *y++ = x[INDEX_AT(rows + i) * p + k];
}
""",
    "add_dense": """
static void add_dense(int n_in, int n_out, const WEIGHT *w, const REAL *restrict x, REAL *restrict y)  /* y += W x */
{
    int i, o;

    for (i = 0; i < n_in; i++, w += n_out)
        for (o = 0; o < n_out; o++)
            y[o] += AT(w + o) * x[i];
}
""",
    "dense": """
static void dense(int n_in, int n_out, const WEIGHT *w, const REAL *restrict x, REAL *restrict y)  /* y = W x + b */
{
    int i, o;

    for (o = 0; o < n_out; o++) {
        const WEIGHT *v = w + o;
        REAL sum = AT(v);

        for (i = 0; i < n_in; i++)
            sum += AT(v += n_out) * x[i];
        y[o] = sum;
    }
}
""",
    "add_conv": """
static void add_conv(int n_in, int n_out, int height, int width, int rows, int columns, int above, int left,
                     const WEIGHT *w, const REAL *restrict x, REAL *restrict y)  /* y += W * x, with zeros beyond the edge */
{
    int i, o, r, c, a, b;

    for (o = 0; o < n_out; o++, y += height * width)
        for (i = 0; i < n_in; i++)
            for (a = -above; a < rows - above; a++)
                for (b = -left; b < columns - left; b++) {
                    const REAL weight = AT(w++);

                    for (r = a < 0 ? -a : 0; r < height && r + a < height; r++)
                        for (c = b < 0 ? -b : 0; c < width && c + b < width; c++)
                            y[r * width + c] += weight * x[(i * height + r + a) * width + c + b];
                }
}
""",
    "add_depthwise": """
static void add_depthwise(int n, int height, int width, int rows, int columns, int above, int left,
                          const WEIGHT *w, const REAL *restrict x, REAL *restrict y)  /* a kernel for each unit */
{
    const int p = height * width;
    int i;

    for (i = 0; i < n; i++, w += rows * columns)
        add_conv(1, 1, height, width, rows, columns, above, left, w, x + i * p, y + i * p);
}
""",
    "pool": """
static void pool(int n, int height, int width, int rows, int columns, const REAL *x, REAL *y)  /* means; y may be x */
{
    int i, r, c, k;

    for (i = 0; i < n; i++, x += height * width)
        for (r = 0; r + rows <= height; r += rows)
            for (c = 0; c + columns <= width; c += columns) {
                REAL sum = 0;

                for (k = 0; k < rows * columns; k++)
                    sum += x[(r + k / columns) * width + c + k % columns];
                *y++ = sum / (rows * columns);
            }
}
""",
    "average": """
static void average(int n, int p, const REAL *x, REAL *y)  /* of the p positions of each unit */
{
    int i, k;

    for (i = 0; i < n; i++) {
        REAL sum = 0;

        for (k = 0; k < p; k++)
            sum += *x++;
        y[i] = sum / p;
    }
}
""",
    **{
        f"each_{name}": f"""
static void each_{name}(int n, REAL *y)
{{
    int i;

    for (i = 0; i < n; i++) {{
        const REAL z = y[i];

        y[i] = {activation.c};
    }}
}}
"""
        for name, activation in ACTIVATIONS.items()
    },
    "add": """
static void add(int n, const REAL *x, REAL *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] += x[i];
}
""",
    "times": """
static void times(int n, REAL factor, REAL *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] *= factor;
}
""",
    "add_times": """
static void add_times(int n, REAL factor, const REAL *x, REAL *y)
{
    int i;

    for (i = 0; i < n; i++)
        y[i] += factor * x[i];
}
""",
    "scale": """
static void scale(int n, int p, const WEIGHT *factors, REAL *y)  /* each unit by its factor, at p positions */
{
    int i, k;

    for (i = 0; i < n; i++)
        for (k = 0; k < p; k++)
            *y++ *= AT(factors + i);
}
""",
    "mix": """
static void mix(int n, const REAL *gate, const REAL *old, REAL *y)  /* y = g y + (1 - g) old */
{
    int i;

    for (i = 0; i < n; i++)
        y[i] = gate[i] * y[i] + (1 - gate[i]) * old[i];
}
""",
    "merge": """
static void merge(int n, int p, const INDEX *rows, const WEIGHT *gates, const REAL *x, REAL *y)  /* open units; others stay */
{
    int i, k;

    for (i = 0; i < n; i++) {
        const REAL gate = AT(gates + i);
        REAL *to = y + INDEX_AT(rows + i) * p;

        for (k = 0; k < p; k++, x++, to++)
            *to = gate * *x + (1 - gate) * *to;
    }
}
""",
    "largest": """
static int largest(int n, const REAL *z)  /* the first of the largest */
{
    int i, most = 0;

    for (i = 1; i < n; i++)
        if (z[i] > z[most])
            most = i;
    return most;
}
""",
    "softmax": """
static void softmax(int n, REAL most, REAL *y)
{
    REAL sum = 0;
    int i;

    for (i = 0; i < n; i++)
        sum += y[i] = exponential(y[i] - most);
    for (i = 0; i < n; i++)
        y[i] /= sum;
}
""",
}


def called_by(body: str, *, bits: int | None = None, is_integer: bool = False) -> list[str]:
    """Return the names of all functions that a body calls, and that those call, in the order of a file.

    >>> called_by("y[0] = sigmoid(y[0]);")
    ['exponential', 'sigmoid']
    """
    names = [*dict.fromkeys(["is_number", "exponential", *(INTEGERS if bits else {}), *FUNCTIONS])]
    called = re.compile(r"\b(" + "|".join(names) + r")\(")
    needed, new = set[str](), set(called.findall(body))
    while new:
        needed |= new
        texts = [text_of(name, bits=bits, is_integer=is_integer) for name in new]
        new = {name for text in texts for name in called.findall(text)} - needed
    return [name for name in names if name in needed]


def text_of(name: str, *, bits: int | None = None, is_integer: bool = False) -> str:
    """Return the text of a function; `is_integer`: where x holds integers."""
    return (FUNCTIONS | (INTEGERS if bits else {}) | (WHOLE if is_integer else {}))[name]
