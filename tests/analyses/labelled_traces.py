"""Reasoning traces written for this test and labelled by hand, by meaning: which of the three faults a reader finds in them.

The rules were written before the traces, and then changed with the first half in view; the second half was not looked at again.
``c`` stops at a coarse cue, ``i`` reasons in image space, ``n`` makes no counterfactual comparison.
"""

SEEN = (
    # transitions
    ("transition", "A plant becomes visible on the left, so the camera turned left. The answer is the one with the plant.", "cn"),
    ("transition", "The view changes noticeably, which suggests a large rotation to the right. I choose 70 degrees.", "cn"),
    ("transition", "The sofa moved from the centre to the edge. That is a big shift, so the number must be big.", "cn"),
    (
        "transition",
        "The lamp shifts by about a quarter of the view. With a field of view of 90 degrees that is about 20 degrees.",
        "n",
    ),
    (
        "transition",
        "Most objects stay aligned. A rotation of 70 degrees would push the sofa out of view, so it must be 10 degrees.",
        "c",
    ),
    ("transition", "The door is still visible. If the camera had turned 50 degrees, the door would have left the frame.", "c"),
    (
        "transition",
        "In image 2 the shelf moves less than in image 3. The action is 40 degrees, so image 3 fits, since image 2 would need "
        "only 20.",
        "",
    ),
    ("transition", "The table is closer in the second image. So we moved forward. I pick 1.2 meters.", "cn"),
    (
        "transition",
        "The table looks roughly twice as large as before, so the distance was halved. The table was 2 m away: 1 meter.",
        "n",
    ),
    ("transition", "The ceiling appears, so the camera looked up. Image 4 shows the most ceiling.", "cn"),
    (
        "transition",
        "The horizon drops by roughly 30 percent of the height. 60 degrees is too large for that, 10 degrees too small; it is "
        "20.",
        "",
    ),
    ("transition", "The change is too small to be 2.4 meters. The chair barely grows. So 0.2 meters.", "c"),
    # layouts
    ("layout", "The mug is on the left side of the image, so it has a smaller x. Option B has the smallest x.", "ci"),
    ("layout", "The book is at the back of the picture, so its y must be large. The answer is C.", "ci"),
    (
        "layout",
        "The bed is the origin and the x axis runs from the bed to the chair. The lamp lies beyond the chair, so x exceeds 2.2.",
        "c",
    ),
    ("layout", "The sofa is left of the plant in image 1 and also in the map. So image 1 is right.", "c"),
    (
        "layout",
        "Relative to the first anchor, the box stands halfway along the line to the second anchor, about 0.6 meters from it.",
        "",
    ),
    ("layout", "The target is wider in image 2 than in image 3. The map gives it 0.4 m, so image 2 fits.", ""),
    ("layout", "The piano appears on the right in the image. Its x coordinate should therefore be high, like 3.1.", "ci"),
    ("layout", "The vase is behind the monitor. Behind means greater depth, so option D.", "c"),
    (
        "layout",
        "The origin is a corner of the red mug. The keyboard is the second anchor. The cup is to the left in the picture, which "
        "is the direction from mug to keyboard, so x is positive, about 0.3 m.",
        "",
    ),
    ("layout", "The object is lower down in the picture and near the centre, so (0.5, 0.2).", "ci"),
    ("layout", "Comparing the sizes of the target in all four images, only image 4 shows a small one as the map says.", ""),
    ("layout", "There is a bed, a chair and a nightstand. The arrangement matches image 2.", "c"),
)

UNSEEN = (
    # transitions
    ("transition", "The window disappears on the right side. Turning left does that. So the answer is 50 degrees.", "cn"),
    ("transition", "Everything looks different after the action; a strong turn. 60 degrees.", "cn"),
    ("transition", "The painting stays nearly where it was. Had we rotated by 40 degrees, it would be gone. 10 degrees.", "c"),
    ("transition", "I see the wardrobe now. It was not there before. Image 5 shows the wardrobe.", "cn"),
    (
        "transition",
        "The wardrobe is visible in images 3 and 5, but in image 5 it is much further to the left than in image 3.",
        "n",
    ),
    (
        "transition",
        "The armchair moves one third of the frame. Assuming 90 degrees of view, this is 30 degrees. 70 degrees cannot be right.",
        "",
    ),
    ("transition", "The camera moved backward because more floor is visible. Option A has the most floor.", "cn"),
    (
        "transition",
        "The rug keeps its size, so hardly any movement took place. 2 meters are impossible here. 0.2 meters it is.",
        "c",
    ),
    ("transition", "The bed grows a lot. We must have walked a long way. 2.2 meters.", "cn"),
    ("transition", "The bed's width goes from 200 to 260 pixels, so the distance shrank by 23 percent.", "n"),
    ("transition", "A step of 1.2 meters should change the angle to the shelf a lot more than this, so 0.4 meters.", "c"),
    ("transition", "The lamp went left, so the camera went right. The lamp is at the left in image 2.", "cn"),
    # layouts
    ("layout", "On screen the toy car sits near the left border, hence a low x value. A.", "ci"),
    ("layout", "The stapler is drawn higher up in the image than the cup, so it has the larger y.", "ci"),
    ("layout", "Since the desk lamp defines zero and the mug lies in the positive direction, the book has a negative x: C.", "c"),
    ("layout", "The chair is in front of the bed in both. I go with image 1.", "c"),
    (
        "layout",
        "The cabinet spans 0.8 m in the map but seems to be only half the size of the bed, which is 1.6 m; consistent.",
        "",
    ),
    ("layout", "The right edge of the photo is where the ball is, therefore the coordinates are (1.4, 0.3).", "ci"),
    ("layout", "The distance from the sofa to the plant is 2 m, and the table is a quarter of the way along it: x = 0.5.", ""),
    ("layout", "The globe is next to the books, as it should be. So the second image.", "c"),
    ("layout", "Its x should be small because it is on the left.", "ci"),
    (
        "layout",
        "Looking from the first object to the second, the third is on the left hand, so y is positive. It is a bit nearer than "
        "the second, around 0.4 m.",
        "",
    ),
    ("layout", "In option B the object is too wide for the gap between bed and chair that the picture shows.", ""),
    ("layout", "The picture shows the plant far away, so z is big, I think D.", "ci"),
)
